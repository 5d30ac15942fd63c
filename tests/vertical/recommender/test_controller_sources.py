"""Where the recommender's controller reads: history from Prometheus, usage from external metrics."""

from __future__ import annotations

import pytest
from tests.vertical.custom_kinds import WHERE
from tests.vertical.recommender.live import story, vpa
from tests.vertical.recommender.running import START

from kubetide.objects.kinds import (
    DEPLOYMENTS,
    PODS,
    VPA_CHECKPOINTS,
)
from kubetide.ports.errors import MetricsError, NoSeries
from kubetide.ports.metrics import ExternalValues
from kubetide.testing import builders
from kubetide.units.time import hours, minutes, to_seconds
from kubetide.vertical.recommender.controller.history import HistoryReader
from kubetide.vertical.recommender.facts.history import HistoryError, HistorySettings, Series


def test_history_comes_from_prometheus():
    """Prometheus's history of a pod counts from the first pass on; no checkpoint is written then."""

    async def main(world):
        await world.begin()
        metric = {"namespace": "default", "pod_name": "web-0", "name": "app"}
        labels = {"kubernetes_namespace": "default", "kubernetes_pod_name": "web-0", "pod_label_app": "web"}
        begun = to_seconds(START)
        hours = tuple((begun - 3600.0 * hour, "2.5") for hour in range(48, 0, -1))
        asked = []

        class Source:
            async def each_series(self, query, take):
                asked.append(query.query)
                if "rate(" in query.query:
                    take(Series(metric, (*hours, (begun - 60, "NaN"))))
                else:
                    take(Series(metric, ()) if "memory" in query.query else Series(labels, ((begun, "1"),)))

        reader = HistoryReader(Source(), world.clock, HistorySettings())
        world.history = reader.read
        world.controller = world.made()
        await world.run_for(minutes(1.5))
        assert len(asked) == 3
        assert (await world.target())["cpu"] == "2975m"
        assert not (await world.cluster.list(VPA_CHECKPOINTS)).items

    story(main, storage="prometheus")


@pytest.mark.parametrize(
    "error", [MetricsError("no answer"), HistoryError("no pod label")], ids=["none", "broken"]
)
def test_the_loop_goes_on_without_history(error):
    """Where Prometheus has no answer that can be read, the loop says so and begins from nothing."""

    async def main(world):
        async def fail():
            raise error

        await world.begin()
        world.history = fail
        world.controller = world.made()
        await world.run_for(minutes(1.5))
        assert any(str(error) in text for text in world.warnings)
        assert (await world.target())["cpu"] == "442m"

    story(main, storage="prometheus")


@pytest.mark.parametrize("hangs", [False, True])
def test_a_pod_whose_external_metric_has_no_answer_harms_no_other(hangs):
    """Nor one that hangs, where only one question is asked at a time: it comes last from the second pass on."""

    class External:
        def __init__(self, clock):
            self.clock = clock

        async def external_values(self, metric, *, namespace, selector=""):
            if "odd" in selector:
                if hangs:
                    await self.clock.sleep(hours(1))
                raise MetricsError("no data")
            return ExternalValues([700], self.clock.now(), [{"name": "app"}])

    async def main(world):
        await world.begin(vpa(), vpa("odd", target="odd"))
        await world.cluster.create(DEPLOYMENTS, builders.deployment("odd", replicas=1, cpu="200m"), **WHERE)
        await world.cluster.create(PODS, builders.pod("odd-0", labels={"app": "odd"}, cpu="200m"), **WHERE)
        running = {"status": {"phase": "Running"}}
        await world.cluster.patch(PODS, "odd-0", running, subresource="status", **WHERE)
        world.external = External(world.clock)
        world.controller = world.made()
        await world.run_for(minutes(4.5))
        assert (await world.target())["cpu"] == "813m"
        assert "cores of pod default/odd-0: " in world.controller.metrics_error

    story(main, use_external_metrics=True, external_metrics_cpu_metric="cores", update_worker_count=1)


def test_usage_comes_from_external_metrics():
    """One question a pod and resource, by the VPA's selector; a resource without series counts as 0."""

    class External:
        def __init__(self):
            self.asked = []
            self.broken = False

        async def external_values(self, metric, *, namespace, selector=""):
            self.asked.append((metric, namespace, selector))
            if self.broken:
                raise MetricsError("no adapter")
            if metric == "mem":
                raise NoSeries("none")
            labels = [{"name": "app"}, {"another": "label"}]
            return ExternalValues([700, 9_000_000], world_now(), labels)

    def world_now():
        return clock.now()

    clock = None

    async def main(world):
        nonlocal clock
        clock = world.clock
        await world.begin()
        world.external = External()
        world.controller = world.made()
        await world.run_for(minutes(1.5))
        assert set(world.external.asked) == {
            ("cores", "default", "app=web,pod=web-0"),
            ("mem", "default", "app=web,pod=web-0"),
        }
        assert (await world.target())["cpu"] == "813m"
        assert world.controller.metrics_error == ""
        world.external.broken = True
        await world.run_for(minutes(1.5))
        why = "cores of pod default/web-0 (and 1 more): no adapter"
        assert world.controller.metrics_error == why

    story(
        main,
        use_external_metrics=True,
        external_metrics_cpu_metric="cores",
        external_metrics_memory_metric="mem",
    )

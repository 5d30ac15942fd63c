"""What the three VPA loops report to Prometheus, as it is scraped."""

from __future__ import annotations

import json
import re

import pytest
from tests.vertical.custom_kinds import WHERE
from tests.vertical.pods_world import START, play
from tests.vertical.recommender.live import story

from kubetide.embedded.apiserver.store import EmbeddedCluster, Store
from kubetide.objects.kinds import DEPLOYMENTS, PODS, VPAS
from kubetide.runtime.series.listening import ListeningRecorder
from kubetide.runtime.timing.clock import run_virtual
from kubetide.testing import builders
from kubetide.units.exposition import Registry
from kubetide.units.time import before, format_rfc3339, hours, minutes, seconds
from kubetide.vertical.admission.controller import AdmissionController
from kubetide.vertical.admission.series import AdmissionSeries
from kubetide.vertical.admission.settings import Settings as AdmissionSettings
from kubetide.vertical.recommender.series import recommendations as recommender_series
from kubetide.vertical.recommender.series.recommendations import RecommenderSeries
from kubetide.vertical.series import size_label
from kubetide.vertical.updater.series import UpdaterSeries
from kubetide.watching import Caches

RUNNING = {"status": {"phase": "Running"}}


class Scraped:
    """A registry, as text by series."""

    def __init__(self):
        self.registry = Registry()

    def listen(self, controller, series):
        """Have the series receive a controller's records, as in a process."""

        def fail(text):
            raise AssertionError(text)

        listening = ListeningRecorder(controller._recorder, fail)
        listening.listen(controller.name, series.on_record)
        controller._recorder = listening

    def text(self):
        return self.registry.text().decode()

    def values(self, *, zeros=False):
        found = {}
        for line in self.text().splitlines():
            if line and not line.startswith("#"):
                name, _, value = line.rpartition(" ")
                if zeros or value != "0":
                    found[name] = float(value)
        return found


def value_of(found, name, **labels):
    """The value of the one series that has these labels among others."""
    [value] = [
        value
        for series, value in found.items()
        if re.match(rf"{name}(\{{|$)", series)
        and all(f'{key}="{text}"' in series for key, text in labels.items())
    ]
    return value


def test_the_recommender_reports_what_it_serves_and_recommends():
    """VPAs by what they have, answers of the metrics API, parts of a pass, and each recommendation."""
    scraped = Scraped()

    async def main(world):
        scraped.listen(world.controller, RecommenderSeries(scraped.registry, world.controller, world.clock))
        await world.begin()
        await world.run_for(minutes(3.5))
        world.usage.error = "no metrics"
        await world.run_for(minutes(2.5))

    story(main)
    found = scraped.values()
    counted = {name: value for name, value in found.items() if "vpa_objects_count" in name}
    assert counted == {
        'vpa_recommender_vpa_objects_count{api="v1",has_recommendation="true",matches_pods="true",'
        'unsupported_config="false",update_mode="Recreate"}': 1
    }
    prefix = "vpa_recommender_"
    answers = f"{prefix}metric_server_responses"
    assert value_of(found, answers, client_name="default-metrics-client", is_error="false") == 3
    assert value_of(found, answers, client_name="default-metrics-client", is_error="true") == 2
    assert found[f"{prefix}aggregate_container_states_count"] == 1
    steps = {
        re.search('step="([^"]+)"', name)[1]
        for name in found
        if name.startswith(f"{prefix}execution_latency_seconds_count")
    }
    assert steps == {
        "LoadVPAs",
        "LoadPods",
        "LoadMetrics",
        "UpdateVPAs",
        "MaintainCheckpoints",
        "GarbageCollect",
        "total",
    }
    where = {"namespace": "default", "vpa": "web", "container": "app"}
    shown = "kubetide_recommender_recommendation"
    assert value_of(found, shown, resource="cpu", bound="target", **where) == 0.442
    assert value_of(found, shown, resource="memory", bound="target", **where) == 548861636
    assert len([name for name in found if name.startswith(f"{shown}{{")]) == 8


def test_what_is_only_advised_is_reported_too():
    """Without a right to write, the series have what would be written, and workloads without a VPA object."""
    scraped = Scraped()

    async def main(world):
        await begin(world, scraped)
        assert not (await world.status()).recommendation
        body = builders.deployment("cart", replicas=1)
        body["metadata"]["labels"] = {"team": "shop"}
        await world.cluster.create(DEPLOYMENTS, body, **WHERE)
        pod = builders.pod("cart-0", labels={"app": "cart"})
        pod["spec"]["containers"][0]["name"] = "app"
        await world.cluster.create(PODS, pod, **WHERE)
        await world.cluster.patch(PODS, "cart-0", RUNNING, subresource="status", **WHERE)
        world.usage.used["cart-0"] = (500, 300_000_000)
        await world.run_for(minutes(2.5))

    story(main, acts=False, advise_selector="team=shop")
    found, shown = scraped.values(), "kubetide_recommender_recommendation"
    objects = {"has_recommendation": "true", "matches_pods": "true", "unsupported_config": "false"}
    for mode in ("Off", "Recreate"):
        assert value_of(found, "vpa_recommender_vpa_objects_count", update_mode=mode, **objects) == 1
    cpu = {"bound": "target", "resource": "cpu", "namespace": "default", "container": "app"}
    assert value_of(found, shown, vpa="web", **cpu) == 0.442
    assert value_of(found, shown, vpa="deployment:cart", **cpu) > 0.442


def test_the_first_recommendation_is_timed_once():
    """From the creation of the object to the pass that first had samples; not again by a later pass or process."""
    scraped = Scraped()

    async def main(world):
        scraped.listen(world.controller, RecommenderSeries(scraped.registry, world.controller, world.clock))
        await world.begin()
        await world.run_for(minutes(4.5))
        assert world.controller.first_recommended == []
        world.controller = world.made()
        await world.run_for(minutes(1.5))
        assert world.controller.first_recommended == []

    story(main)
    found = scraped.values()
    assert found["vpa_recommender_recommendation_latency_seconds_count"] == 1
    assert found["vpa_recommender_recommendation_latency_seconds_sum"] == 60


def test_recommendations_that_are_shown_are_bounded(monkeypatch):
    """Beyond the bound they are counted, not shown; a deleted VPA's go with it."""
    scraped = Scraped()
    monkeypatch.setattr(recommender_series, "MOST_CONTAINERS", 0)

    async def main(world):
        await begin(world, scraped)
        found = scraped.values()
        assert found["kubetide_recommender_recommendations_left_out"] == 1
        assert not any("kubetide_recommender_recommendation{" in name for name in found)
        monkeypatch.setattr(recommender_series, "MOST_CONTAINERS", 10)
        assert any("kubetide_recommender_recommendation{" in name for name in scraped.values())
        await world.cluster.delete(VPAS, "web", **WHERE)
        await world.run_for(minutes(1.5))
        assert not any("kubetide_recommender_recommendation{" in name for name in scraped.values())

    story(main)


def test_the_updater_counts_evictions():
    """Pods that a VPA controls, that are to go and that went, by mode and size."""
    scraped = Scraped()

    async def main(world):
        scraped.listen(world.updater, UpdaterSeries(scraped.registry, world.updater))
        await world.build(2)
        async with world.running():
            await world.clock.sleep(minutes(1) + seconds(40))
            return scraped.values()

    found = play(main)
    by_mode = {"update_mode": "Recreate", "vpa_size_log2": "1"}
    assert value_of(found, "vpa_updater_controlled_pods_total", **by_mode) == 2
    assert value_of(found, "vpa_updater_evictable_pods_total", **by_mode) == 2
    assert value_of(found, "vpa_updater_vpas_with_evicted_pods_total", **by_mode) == 1
    assert (
        value_of(found, "vpa_updater_evicted_pods_total", vpa_name="web", vpa_namespace="default", **by_mode)
        == 1
    )
    assert value_of(found, "vpa_updater_execution_latency_seconds_count", step="total") == 1


def test_the_updater_counts_resizes():
    """Pods to be resized and resized; gauges of all sizes are there, at 0 where there is nothing."""
    scraped = Scraped()

    async def main(world):
        scraped.listen(world.updater, UpdaterSeries(scraped.registry, world.updater))
        await world.build(2, mode="InPlaceOrRecreate")
        async with world.running():
            await world.clock.sleep(minutes(1) + seconds(40))
            first = scraped.values(zeros=True)
            await world.clock.sleep(minutes(4))
            return first, scraped.values()

    first, late = play(main)
    assert value_of(first, "vpa_updater_in_place_updatable_pods_total", vpa_size_log2="1") == 2
    assert value_of(first, "vpa_updater_in_place_updatable_pods_total", vpa_size_log2="20") == 0
    evicted = {"vpa_name": "web", "update_mode": "InPlaceOrRecreate", "vpa_size_log2": "1"}
    assert value_of(first, "vpa_updater_evicted_pods_total", **evicted) == 0
    assert not any("evictable_pods_total{" in name for name in first)
    assert value_of(late, "vpa_updater_in_place_updated_pods_total", vpa_name="web") == 2


def test_the_updater_counts_loops_without_the_lease():
    """A loop that does nothing says why."""
    scraped = Scraped()

    async def main(world):
        scraped.listen(world.updater, UpdaterSeries(scraped.registry, world.updater))
        await world.build(2, lease=False)
        async with world.running(lease=False):
            await world.clock.sleep(minutes(3) + seconds(30))
            return scraped.values()

    found = play(main)
    assert value_of(found, "vpa_updater_admission_controller_status_invalid_total", reason="error") == 3


def test_the_admission_controller_counts_reviews():
    """Each review by what it was about and came to; a pod without a VPA is not changed, a VPA is refused."""
    scraped = Scraped()

    def review(group, resource, body):
        request = {
            "uid": "u",
            "resource": {"group": group, "version": "v1", "resource": resource},
            "namespace": "default",
            "operation": "CREATE",
            "object": body,
        }
        return json.dumps({"request": request}).encode()

    pod = {"metadata": {"name": "web"}, "spec": {"containers": [{"name": "main"}]}}
    bad = {"metadata": {"name": "web"}, "spec": {"recommenders": [{"name": "a"}, {"name": "b"}]}}

    async def main(clock):
        cluster = EmbeddedCluster(Store(), clock, seed=1)
        controller = AdmissionController(
            cluster, clock, AdmissionSettings(), caches=Caches(cluster, clock), answers=object()
        )
        AdmissionSeries(scraped.registry, controller)
        for body in (
            review("", "pods", pod),
            review("autoscaling.k8s.io", "verticalpodautoscalers", bad),
            b"not JSON",
        ):
            controller.handler.answer("application/json", body)

    run_virtual(main, start=START)
    found = scraped.values()
    prefix = "vpa_admission_controller_"
    assert found[f'{prefix}admission_pods_total{{applied="false"}}'] == 1
    latency = f"{prefix}admission_latency_seconds_count"
    assert value_of(found, latency, resource="Pod", status="skipped") == 1
    assert value_of(found, latency, resource="VPA", status="skipped") == 1
    assert value_of(found, latency, resource="unknown", status="error") == 1
    assert value_of(found, f"{prefix}execution_latency_seconds_count", step="total") == 3
    buckets = re.findall(
        rf'{prefix}admission_latency_seconds_bucket{{.*resource="Pod".*le="([^"]+)"', scraped.text()
    )
    assert " ".join(buckets) == (
        "0.01 0.02 0.05 0.1 0.2 0.3 0.4 0.5 0.6 0.7 0.8 0.9 1 2 5 10 20 30 60 120 300 +Inf"
    )


def test_sizes_are_powers_of_two():
    """Rounded down; nothing counts as one, and there is a largest."""
    assert [size_label(pods) for pods in (0, 1, 2, 3, 4, 1023, 1024, 1 << 25)] == [
        *("0", "0", "1", "1", "2", "9", "10", "20")
    ]


async def begin(world, scraped):
    """Let the recommender make its first recommendation, with its series scraped."""
    scraped.listen(world.controller, RecommenderSeries(scraped.registry, world.controller, world.clock))
    await world.begin()
    await world.run_for(minutes(1.5))


def test_usage_is_held_against_what_was_recommended():
    """A sample before there is a recommendation misses one; later ones count by how far off it was."""
    scraped = Scraped()
    prefix = "vpa_quality_"
    seen = []

    async def main(world):
        await begin(world, scraped)
        seen.append(scraped.values())
        world.usage.used = {"web-0": (760, 450_000_000)}
        await world.run_for(minutes(1.1))
        seen.append(scraped.values())
        await world.run_for(minutes(1.1))

    story(main)
    first, second = seen
    for found in seen:
        for resource in ("cpu", "memory"):
            missing = f"{prefix}usage_sample_missing_recommendation_count"
            assert value_of(found, missing, resource=resource, is_oom="false") == 1
    lower = f"{prefix}cpu_recommendation_lower_equal_usage_diffs_cores_sum"
    assert value_of(first, lower, recommendation_missing="true") == 0.38
    recommended = value_of(second, f"{prefix}cpu_recommendations_cores_sum")
    assert value_of(second, f"{prefix}cpu_recommendations_cores_count") == 1
    assert value_of(second, f"{prefix}mem_recommendations_bytes_count", is_oom="false") == 1
    under = value_of(second, lower, recommendation_missing="false")
    assert under == pytest.approx(0.76 - recommended)
    relative = value_of(second, f"{prefix}usage_recommendation_relative_diffs_sum", resource="cpu")
    assert relative == pytest.approx(under / recommended)
    # What 760 m made of the recommendation, as a share of what 380 m had made of it.
    third = value_of(scraped.values(), f"{prefix}cpu_recommendations_cores_sum") - recommended
    change = value_of(second, f"{prefix}relative_recommendation_changes_sum", resource="cpu")
    assert change == pytest.approx(third / recommended - 1)


def test_changes_of_recommendations_are_counted_for_each_set_of_labels():
    """As with upstream: pods of other labels have a recommendation of their own, and none before the first pass."""
    scraped = Scraped()
    prefix = "vpa_quality_"
    seen = []

    async def main(world):
        await begin(world, scraped)
        body = builders.pod("web-1", labels={"app": "web", "role": "leader"}, cpu="200m")
        body["spec"]["containers"][0]["name"] = "app"
        await world.cluster.create(PODS, body, **WHERE)
        await world.cluster.patch(PODS, "web-1", RUNNING, subresource="status", **WHERE)
        world.usage.used["web-1"] = (500, 300_000_000)
        for _ in range(2):
            await world.run_for(minutes(1.5))
            seen.append(scraped.values())

    story(main)
    changes = [
        value_of(found, f"{prefix}relative_recommendation_changes_count", resource="cpu") for found in seen
    ]
    assert changes == [1, 3]
    for found in seen:
        missing = f"{prefix}usage_sample_missing_recommendation_count"
        assert value_of(found, missing, resource="cpu", is_oom="false") == 2


def test_an_oom_that_is_too_old_is_not_held_against_a_recommendation():
    """Nothing is made of it; one that counts is held against the recommendation by what it made of the need."""
    scraped = Scraped()
    counted = []

    async def main(world):
        await begin(world, scraped)
        for restarts, ago in ((1, minutes(1)), (2, hours(48))):
            ended = format_rfc3339(before(world.clock.now(), ago))
            killed = {"terminated": {"reason": "OOMKilled", "exitCode": 137, "finishedAt": ended}}
            status = {"name": "app", "restartCount": restarts, "state": {"running": {}}, "lastState": killed}
            await world.show({"phase": "Running", "containerStatuses": [status]})
            await world.run_for(minutes(1.5))
            counted.append(
                value_of(scraped.values(), "vpa_quality_mem_recommendations_bytes_count", is_oom="true")
            )

    story(main)
    assert counted == [1, 1]

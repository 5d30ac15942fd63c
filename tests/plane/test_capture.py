"""A run on a real control plane, captured from its records and from a real Prometheus, and simulated again."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import CliRunner
from tests.cluster.prometheus_server import exporter, find_prometheus, running_prometheus
from tests.plane.state_metrics import count_usage, skip_without_state_metrics, state_metrics
from tests.plane.towns import MEDIUM, SOON, kubetide_run, town
from tests.tasks import stop

from kubetide.cli.main import cli
from kubetide.embedded.draws import fixed
from kubetide.objects.kinds import DEPLOYMENTS, HPAS
from kubetide.runtime.timing.clock import run_real
from kubetide.testing import builders
from kubetide.units.time import Instant, format_rfc3339, seconds

pytestmark = pytest.mark.slow

FLAGS = (
    "--controllers=horizontal,nodes",
    "--horizontal-pod-autoscaler-sync-period=1s",
    "--horizontal-pod-autoscaler-downscale-stabilization=2s",
    "--horizontal-pod-autoscaler-cpu-initialization-period=0s",
    "--horizontal-pod-autoscaler-initial-readiness-delay=0s",
    *SOON,
)
ABOUT_CLIENTS = ("--controllers", "--kube-api")
POD_MILLI = 150
"""What a pod uses at the HPA's target."""

FEWEST, MOST = 2, 8
SLOW_TO_GO = replace(MEDIUM, shutdown=fixed(seconds(3)))
"""What goes between two ticks is not seen to go."""

QUIET_S = 2
HELD_S = 3


class Span(NamedTuple):
    """When what is to be captured began and ended."""

    records: Path
    begin: Instant
    end: Instant


async def a_burst(clock, audited, folder, reported):
    """Two pods, a burst that needs eight and one more machine, and its end, with that machine drained."""
    async with town(audited, clock, folder, SLOW_TO_GO) as place:
        cluster, home = place.cluster, place.home
        counting = asyncio.create_task(count_usage(place, reported))
        await cluster.create(DEPLOYMENTS, builders.deployment("web", replicas=2, cpu="300m"), namespace=home)
        await place.until("two run", lambda: len(place.running("web")) == 2)
        place.load.set("web", FEWEST * POD_MILLI)
        hpa = builders.hpa("web", "web", min_replicas=FEWEST, max_replicas=MOST)
        await cluster.create(HPAS, hpa, namespace=home)
        async with kubetide_run(place, "captured", "--act", *FLAGS) as run:
            await place.until("it leads", lambda: run.said("leading by lease cluster-autoscaler"))
            begin = clock.now()
            await clock.sleep(seconds(QUIET_S))
            # A pod more each second: who comes a second too late has one too few, and no more.
            for pods in range(FEWEST + 1, MOST + 1):
                place.load.set("web", pods * POD_MILLI)
                await clock.sleep(seconds(1))
            await place.until("all desired pods run", lambda: len(place.running("web")) == MOST)
            await clock.sleep(seconds(HELD_S))
            for pods in range(MOST - 1, FEWEST - 1, -1):
                place.load.set("web", pods * POD_MILLI)
                await clock.sleep(seconds(1))
            await place.until("what is left fits on one node", lambda: len(place.nodes.objects) == 1)
            await clock.sleep(seconds(QUIET_S))
            end = clock.now()
        await stop(counting)
        return Span(place.folder / "kubetide", begin, end)


def captured(folder, *arguments):
    """Return which part of the steps is near, in percent, by `replicas` and `nodes`, and what was said."""
    result = CliRunner().invoke(cli, ["capture", *map(str, arguments), "--out", str(folder)])
    assert result.exit_code == 0, f"{result.output}\n{result.exception}"
    card = {
        line.split()[0]: float(line.split()[-2].rstrip("%"))
        for line in result.output.splitlines()
        if line.count("%") == 2
    }
    return card, " ".join(result.output.split())


@pytest.mark.skipif(find_prometheus() is None, reason="not there: prometheus (KUBETIDE_PROMETHEUS)")
def test_a_captured_run(audited, tmp_path):
    """A burst, its end and a drain come back: from the records nearly step by step, and from Prometheus alone.

    Prometheus has a mean, and no series when machines become Ready and go, so that it comes less near; it says so.
    """
    skip_without_state_metrics()
    (tmp_path / "prometheus").mkdir()
    with (
        exporter() as reported,
        state_metrics(audited) as state,
        running_prometheus(tmp_path / "prometheus", reported, state) as prometheus,
    ):
        span = run_real(lambda clock: a_burst(clock, audited, tmp_path, reported))
        card, said = captured(tmp_path / "records", span.records)
        assert card["replicas"] >= 95, said
        assert card["nodes"] >= 85, said
        for times in ("took from deletion to end", "1 machine booted, in ", "1 machine went, in "):
            assert times in said

        times = ("--since", format_rfc3339(span.begin), "--until", format_rfc3339(span.end), "--step", "1s")
        policy = [f"--set={flag.removeprefix('--')}" for flag in FLAGS if not flag.startswith(ABOUT_CLIENTS)]
        card, said = captured(tmp_path / "series", "--prometheus-url", prometheus.url, *times, *policy)
        # On a busy machine scrapes come late, and each is a second of thirty: mostly it is 83 to 97.
        assert card["replicas"] >= 60, said
        assert card["nodes"] >= 75, said
        for not_seen in ("no series tells the flags of the loops", "no machine was seen that went"):
            assert not_seen in said
        assert "Node groups are those that labels of nodes name" in said

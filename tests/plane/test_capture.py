"""A run on a real control plane, captured from its records and from a real Prometheus, and simulated again."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import CliRunner
from tests.cluster.prometheus_server import exporter, find_prometheus, running_prometheus
from tests.plane.state_metrics import count_usage, skip_without_state_metrics, state_metrics
from tests.plane.towns import MEDIUM, SOON, kubetide_run, town

from kubetide.cli.main import cli
from kubetide.objects.kinds import DEPLOYMENTS, HPAS
from kubetide.runtime.clock import run_real
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
QUIET_S = 6
BURST_S = 12


class Span(NamedTuple):
    """When what is to be captured began and ended."""

    records: Path
    begin: Instant
    end: Instant


async def a_burst(clock, audited, folder, told):
    """Two pods, a burst that asks for nine and for a machine more, and its end, with that machine drained."""
    async with town(audited, clock, folder, MEDIUM) as place:
        cluster, home = place.cluster, place.home
        counting = asyncio.create_task(count_usage(place, told))
        await cluster.create(DEPLOYMENTS, builders.deployment("web", replicas=2, cpu="300m"), namespace=home)
        await place.until("two run", lambda: len(place.running("web")) == 2)
        place.load.set("web", 300)
        hpa = builders.hpa("web", "web", min_replicas=2, max_replicas=10)
        await cluster.create(HPAS, hpa, namespace=home)
        async with kubetide_run(place, "captured", "--act", *FLAGS) as run:
            await place.until("it leads", lambda: run.said("leading by lease cluster-autoscaler"))
            begin = clock.now()
            await clock.sleep(seconds(QUIET_S))
            place.load.set("web", 1600)
            await place.until("all that are asked for run", lambda: len(place.running("web")) == 9)
            await clock.sleep(seconds(BURST_S))
            place.load.set("web", 300)
            await place.until("what is left fits on one node", lambda: len(place.nodes.objects) == 1)
            await clock.sleep(seconds(QUIET_S))
            end = clock.now()
        counting.cancel()
        with suppress(asyncio.CancelledError):
            await counting
        return Span(place.folder / "kubetide", begin, end)


def test_a_captured_run(audited, tmp_path):
    skip_without_state_metrics()
    if find_prometheus() is None:
        pytest.skip("not there: prometheus")
    (tmp_path / "prometheus").mkdir()
    with (
        exporter() as told,
        state_metrics(audited) as state,
        running_prometheus(tmp_path / "prometheus", told, state) as prometheus,
    ):
        span = run_real(lambda clock: a_burst(clock, audited, tmp_path, told))
        result = CliRunner().invoke(cli, ["capture", str(span.records), "--out", str(tmp_path / "out")])
        print(result.output, result.exception)
        sets = [
            f"--set={flag.removeprefix('--')}"
            for flag in FLAGS
            if "kube-api" not in flag and "controllers" not in flag.split("=")[0]
        ]
        result = CliRunner().invoke(
            cli,
            [
                "capture",
                "--prometheus-url",
                prometheus.url,
                "--since",
                format_rfc3339(span.begin),
                "--until",
                format_rfc3339(span.end),
                "--step",
                "1s",
                *sets,
                "--out",
                str(tmp_path / "out2"),
            ],
        )
        print(result.output, result.exception)
    assert 0

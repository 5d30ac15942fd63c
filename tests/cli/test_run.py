"""``kubetide run`` as a person starts it, against an API server."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import aiohttp
from click.testing import CliRunner
from tests.cluster.served import TOKEN, served

from kubetide.cli.main import cli
from kubetide.embedded.apiserver.http.kubeconfig import kubeconfig, write_kubeconfig
from kubetide.objects.kinds import (
    CUSTOM_RESOURCE_DEFINITIONS,
    DEPLOYMENTS,
    EVENTS,
    HPAS,
    LEASES,
    PODS,
    VPAS,
)
from kubetide.objects.meta import ObjectMeta
from kubetide.objects.metrics import ContainerMetrics, PodMetrics
from kubetide.runtime.recording.records import RecordError, read_records
from kubetide.runtime.timing.clock import run_real
from kubetide.testing import builders
from kubetide.units.time import before, format_rfc3339, minutes
from kubetide.vertical.definitions import definitions

QUICK = "--horizontal-pod-autoscaler-sync-period=200ms"
PATIENCE_S = 300
"""For what comes at once, on a machine that is busy."""


class Busy:
    """metrics.k8s.io: each of the pods uses its whole request twice over."""

    def __init__(self, clock, names):
        self.clock, self.names = clock, names

    def pod_metrics(self):
        now = format_rfc3339(self.clock.now())
        return [
            PodMetrics(
                metadata=ObjectMeta(name=name, namespace="default", labels={"app": "web"}),
                timestamp=now,
                window="30s",
                containers=(ContainerMetrics(name="main", usage={"cpu": "200m", "memory": "1Mi"}),),
            )
            for name in self.names
        ]

    def node_metrics(self):
        return []


async def a_busy_deployment(cluster, clock):
    since = format_rfc3339(before(clock.now(), minutes(30)))
    body = builders.deployment("web", replicas=2, cpu="100m")
    await cluster.create(DEPLOYMENTS, body, namespace="default")
    await cluster.create(HPAS, builders.hpa("web", "web", cpu_percent=100), namespace="default")
    for name in ("web-0", "web-1"):
        await cluster.create(PODS, builders.pod(name, labels={"app": "web"}, cpu="100m"), namespace="default")
        status = {
            "phase": "Running",
            "startTime": since,
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": since}],
        }
        await cluster.patch(PODS, name, {"status": status}, namespace="default", subresource="status")


@asynccontextmanager
async def running(config, out, *flags):
    """Start ``kubetide run``; return the process. If it is still there at the end it must stop cleanly on SIGTERM."""
    code = "from kubetide.cli.main import main; main()"
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        code,
        "run",
        f"--kubeconfig={config}",
        f"--out={out}",
        "--address=127.0.0.1:0",
        *flags,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield process
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
            _, errors = await asyncio.wait_for(process.communicate(), PATIENCE_S)
            assert (process.returncode, errors.decode()) == (0, "")
    finally:
        if process.returncode is None:
            process.kill()


async def line_with(process, text):
    """Read lines until one holds the text."""
    while True:
        line = (await asyncio.wait_for(process.stdout.readline(), PATIENCE_S)).decode()
        assert line, (await process.stderr.read()).decode()
        if text in line:
            return line


async def is_well(address):
    async with aiohttp.ClientSession() as session:
        for path in ("/livez", "/readyz"):
            answer = await session.get(address + path)
            assert (answer.status, await answer.text()) == (200, "ok\n")


def story(main, tmp_path):
    """Run ``main(cluster, config)`` with the busy Deployment behind a server."""

    async def run(clock):
        metrics = Busy(clock, ["web-0", "web-1"])
        async with served(clock, metrics=metrics) as (cluster, server, connection):
            config = tmp_path / "kubeconfig"
            authority = connection.authority.encode()
            write_kubeconfig(config, kubeconfig(server.url, token=TOKEN, authority=authority))
            await a_busy_deployment(cluster, clock)
            await main(cluster, config)

    run_real(run)


def test_it_advises_and_writes_nothing(tmp_path):
    """Without --act: what it would do and why, health and metrics, and not one write."""

    async def main(cluster, config):
        version = (await cluster.list(PODS)).resource_version
        async with running(config, tmp_path / "out", QUICK) as process:
            assert "only advises" in await line_with(process, "cluster https://127.0.0.1")
            address = (await line_with(process, "health and metrics on")).split()[-1]
            line = await line_with(process, "would be scaled from 2 to 4")
            assert "because cpu utilization: 200% of 100%" in line
            await is_well(address)
            async with aiohttp.ClientSession() as session:
                text = await (await session.get(f"{address}/metrics")).text()
            assert "\nhorizontal_pod_autoscaler_controller_num_horizontal_pod_autoscalers 1\n" in text
            assert 'desired_replicas{hpa_name="web",namespace="default"} ' in text
            assert 'rest_client_requests_total{code="200",host="127.0.0.1:' in text
        assert (await cluster.list(PODS)).resource_version == version

    story(main, tmp_path)


def test_a_pod_is_posted_and_its_recommendation_comes_back(tmp_path):
    """The address of health and metrics answers for a pod that a VPA selects, once the recommender has made a pass."""

    async def main(cluster, config):
        for one in definitions():
            await cluster.create(CUSTOM_RESOURCE_DEFINITIONS, one)
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
        body = {"metadata": {"name": "web"}, "spec": {"targetRef": target}}
        await cluster.create(VPAS, body, namespace="default")
        flags = "--controllers=recommender", "--recommender-interval=300ms"
        async with (
            running(config, tmp_path / "out", *flags) as process,
            aiohttp.ClientSession() as session,
            asyncio.timeout(PATIENCE_S),
        ):
            address = (await line_with(process, "health and metrics on")).split()[-1]
            answer, pod = None, builders.pod("web-2", labels={"app": "web"})
            while answer is None or answer.status != 200:
                answer = await session.post(f"{address}/recommendation", json=pod)
                await asyncio.sleep(0.1)
            [found] = (await answer.json())["recommendations"]
            assert found["containerRecommendations"][0]["target"].keys() == {"memory"}
            assert "is left to HorizontalPodAutoscaler web" in found["why"]
            answer = await session.post(f"{address}/recommendation", data=b"?")
            assert (answer.status, (await answer.json())["message"][:14]) == (400, "no pod as JSON")

    story(main, tmp_path)


def test_it_acts_when_reported_to(tmp_path):
    """With --act the Deployment is scaled, once, and the HPA and an event say so."""

    async def main(cluster, config):
        async with running(
            config, tmp_path / "out", QUICK, "--act", "--adopt-hpas-after=0s", "--log-format=json"
        ) as process:
            assert json.loads(await line_with(process, "leading by lease kubetide"))["level"] == "info"
            line = json.loads(await line_with(process, "scaled from 2 to 4"))
            assert (line["level"], line["loop"], line["subject"]) == ("info", "horizontal", "default/web")
            assert line["why"]
        assert (await cluster.get(DEPLOYMENTS, "web", namespace="default")).spec.replicas == 4
        assert (await cluster.get(HPAS, "web", namespace="default")).status.desired_replicas == 4
        events = (await cluster.list(EVENTS, namespace="default")).items
        assert [event.reason for event in events] == ["SuccessfulRescale"]

    story(main, tmp_path)


def has_records(out):
    try:
        return any(record.full for record in read_records(out, "horizontal"))
    except RecordError:
        return False


def test_records_outlive_a_restart(tmp_path):
    """Two processes after one another, the first killed: both are explained and decided again."""
    out = tmp_path / "out"

    async def main(cluster, config):
        async with running(config, out, QUICK) as first:
            await line_with(first, "would be scaled from 2 to 4")
            async with asyncio.timeout(PATIENCE_S):
                # It is printed before it is recorded.
                while not has_records(out):  # noqa: ASYNC110  a file announces nothing
                    await asyncio.sleep(0.05)
            first.kill()
            await first.wait()
        between = datetime.now(UTC)
        await cluster.patch(HPAS, "web", {"spec": {"maxReplicas": 3}}, namespace="default")
        async with running(config, out, QUICK) as second:
            await line_with(second, "would be scaled from 2 to 3")
        runner = CliRunner()

        def explained(*more):
            result = runner.invoke(cli, ["explain", "hpa", "web", f"--out={out}", *more])
            assert result.exit_code == 0, result.output
            return result.output

        earlier = explained("--at", between.strftime("%Y-%m-%dT%H:%M:%S.%fZ"))
        assert "would be scaled from 2 to 4" in earlier
        assert "is to be scaled to 4 now. It is not written: this run advises" in earlier
        assert "would be scaled from 2 to 3" not in earlier
        assert "would be scaled from 2 to 3" in explained()
        replayed = runner.invoke(cli, ["replay", str(out)])
        assert replayed.exit_code == 0, replayed.output

    story(main, tmp_path)


# So long that no leader of a busy machine loses its lease unasked.
PATIENT = (
    "--leader-elect-lease-duration=10m",
    "--leader-elect-renew-deadline=5m",
    "--leader-elect-retry-period=300ms",
)


def test_another_takes_over_when_the_leader_is_killed(tmp_path):
    """One of two acts; after kill -9 the other waits until the lease has run out, and goes on from there."""

    async def main(cluster, config):
        async def lease():
            return (await cluster.get(LEASES, "kubetide", namespace="kube-system")).spec

        async with running(
            config, tmp_path / "first", QUICK, "--act", "--adopt-hpas-after=0s", *PATIENT
        ) as first:
            await line_with(first, "leading by lease kubetide")
            await line_with(first, "scaled from 2 to 4")
            async with running(
                config, tmp_path / "second", QUICK, "--act", "--adopt-hpas-after=0s", *PATIENT
            ) as second:
                address = (await line_with(second, "health and metrics on")).split()[-1]
                await line_with(second, "waiting for lease kubetide, which ")
                await is_well(address)
                first.kill()
                await first.wait()
                left = await lease()
                # What the dead one left, but for its duration: the test need not wait for ten minutes.
                patch = {"spec": {"leaseDurationSeconds": 1}}
                await cluster.patch(LEASES, "kubetide", patch, namespace="kube-system")
                await line_with(second, "leading by lease kubetide")
                taken = await lease()
                assert taken.holder_identity != left.holder_identity
                assert taken.lease_transitions == left.lease_transitions + 1
                await cluster.patch(DEPLOYMENTS, "web", {"spec": {"replicas": 2}}, namespace="default")
                await line_with(second, "scaled from 2 to 4")
        assert (await lease()).holder_identity == ""

    story(main, tmp_path)


def test_config_check_shows_each_setting_and_its_source(tmp_path, monkeypatch):
    """A valid setting is listed with its source; an invalid one is one line with the place and the fix."""
    file = tmp_path / "kubetide.yaml"
    file.write_text("act: true\nscan-interval: 20s\n")
    monkeypatch.setenv("KUBETIDE_KUBE_API_QPS", "5")
    runner = CliRunner()
    arguments = ["config", "check", f"--config={file}", "--horizontal-pod-autoscaler-tolerance=0.2"]
    result = runner.invoke(cli, arguments)
    assert result.exit_code == 0
    assert [line.split() for line in result.output.splitlines()[:-1]] == [
        ["act", "True", f"{file}:", "act"],
        ["horizontal-pod-autoscaler-tolerance", "0.2", "--horizontal-pod-autoscaler-tolerance"],
        ["kube-api-qps", "5", "KUBETIDE_KUBE_API_QPS"],
        ["scan-interval", "20s", f"{file}:", "scan-interval"],
    ]
    wrong = runner.invoke(cli, [*arguments, "--scan-intervall=1s"])
    assert "did you mean scan-interval?" in str(wrong.exception)

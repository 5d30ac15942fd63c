"""``kubetide cluster-autoscaler`` as a Deployment starts it, against an API server."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import asynccontextmanager
from functools import partial

import aiohttp
import pytest
from click.testing import CliRunner
from tests.cli.test_run import line_with
from tests.cluster.faults.proxy import proxied
from tests.cluster.served import TOKEN, served

from kubetide.cli.main import cli
from kubetide.embedded.apiserver.http.kubeconfig import kubeconfig, write_kubeconfig
from kubetide.objects.kinds import CONFIG_MAPS, EVENTS, LEASES, NODES, PODS
from kubetide.runtime.timing.clock import run_real
from kubetide.testing import builders
from kubetide.units.time import format_rfc3339

PATIENCE_S = 300
"""For what comes at once, on a machine that is busy."""

PROVIDER = """
from contextlib import asynccontextmanager
from pathlib import Path

from kubetide.objects.meta import Condition, ObjectMeta
from kubetide.objects.node import Node, NodeStatus
from kubetide.ports.cloud import Cloud, NodeGroup, NodeTemplate


class Still(Cloud):
    name, gpu_label = "still", ""

    def __init__(self, file, bounds):
        self.file, self.bounds, self.target = Path(file), bounds, 0

    async def refresh(self):
        low, high, name = self.bounds.split(":")
        resources = {"cpu": "4", "memory": "8Gi", "pods": "110"}
        ready = (Condition(type="Ready", status="True"),)
        status = NodeStatus(capacity=resources, allocatable=resources, conditions=ready)
        node = Node(metadata=ObjectMeta(name=f"{name}-new"), status=status)
        template = NodeTemplate(node=node)
        sizes = {"min_size": int(low), "max_size": int(high), "target_size": self.target}
        return [NodeGroup(id=name, template=template, **sizes)]

    async def increase_size(self, group_id, delta):
        self.target += delta
        with self.file.open("a") as file:
            file.write(f"{group_id} +{delta}\\n")


@asynccontextmanager
async def connect(context):
    yield Still(context.flags.cloud_config, *context.flags.nodes)
"""


def test_the_help_page_and_errors():
    """The command helps with examples, and names all that is wrong on standard error."""
    runner = CliRunner()
    shown = runner.invoke(cli, ["cluster-autoscaler", "--help"])
    assert shown.exit_code == 0
    assert "    kubetide cluster-autoscaler --cloud-provider=aws " in shown.output
    wrong = runner.invoke(cli, ["cluster-autoscaler", "--scan-intervall=1s", "--cores-total=2:1"])
    assert wrong.exit_code == 1
    assert str(wrong.exception).startswith("3 flags cannot be used:\n  --scan-intervall: unknown flag")


COMMAND = (sys.executable, "-m", "kubetide", "cluster-autoscaler")


@asynccontextmanager
async def running(tmp_path, config, *flags, command=COMMAND, says=""):
    """Start the command with a provider that writes its increases to a file; it must end well on SIGTERM.

    ``says``: a part of each line of standard error.
    """
    (tmp_path / "still.py").write_text(PROVIDER, encoding="utf-8")
    path = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    process = await asyncio.create_subprocess_exec(
        *command,
        *(
            "--cloud-provider=still:connect",
            f"--cloud-config={tmp_path / 'increases'}",
            "--nodes=0:5:workers",
        ),
        *("--address=127.0.0.1:0", f"--kubeconfig={config}"),
        *("--scan_interval=200ms", "--v=4", "--stderrthreshold=info", "--logtostderr=true"),
        *flags,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
    )
    try:
        yield process
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
        _, errors = await asyncio.wait_for(process.communicate(), PATIENCE_S)
        assert process.returncode == 0, errors.decode()
        lines = errors.decode().splitlines()
        assert bool(lines) == bool(says)
        assert all(says in line for line in lines)
    finally:
        if process.returncode is None:
            process.kill()


async def a_waiting_pod(cluster, clock):
    now = format_rfc3339(clock.now())
    node = builders.node("there", cpu="1")
    await cluster.create(NODES, node)
    status = {"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": now}]}
    await cluster.patch(NODES, "there", {"status": status}, subresource="status")
    await cluster.create(PODS, builders.pod("big", cpu="3"), namespace="default")
    waits = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "lastTransitionTime": now}
    patch = {"status": {"phase": "Pending", "conditions": [waits]}}
    await cluster.patch(PODS, "big", patch, namespace="default", subresource="status")


def story(main, tmp_path):
    """Run ``main(cluster, config)`` with a pod that waits for a node behind a server."""

    async def run(clock):
        async with served(clock) as (cluster, server, connection):
            config = tmp_path / "kubeconfig"
            authority = connection.authority.encode()
            write_kubeconfig(config, kubeconfig(server.url, token=TOKEN, authority=authority))
            await a_waiting_pod(cluster, clock)
            await main(cluster, config)

    run_real(run)


async def reasons(cluster):
    return {event.reason for event in (await cluster.list(EVENTS, namespace="default")).items}


@pytest.mark.slow
def test_it_acts_as_upstream_does(tmp_path):
    """It takes the named Lease, serves health and metrics, buys a node, and says so by upstream's event and ConfigMap."""

    async def main(cluster, config):
        flags = (
            "--leader-elect-resource-name=ca-two",
            "--cluster-snapshot-parallelism=4",
        )
        async with running(tmp_path, config, *flags, says="--cluster-snapshot-parallelism") as process:
            assert "; nodes; " in await line_with(process, "cluster https://127.0.0.1")
            address = (await line_with(process, "health and metrics on")).split()[-1]
            await line_with(process, "leading by lease ca-two")
            await line_with(process, "group workers was increased from 0 to 1")
            async with asyncio.timeout(60):  # events are written beside the tick
                while "TriggeredScaleUp" not in await reasons(cluster):  # noqa: ASYNC110  # another process writes them
                    await asyncio.sleep(0.05)
            async with aiohttp.ClientSession() as session:
                answer = await session.get(f"{address}/health-check")
                assert (answer.status, await answer.text()) == (200, "OK")
                metrics = await (await session.get(f"{address}/metrics")).text()
            assert "\ncluster_autoscaler_scaled_up_nodes_total" in metrics
        assert (tmp_path / "increases").read_text() == "workers +1\n"
        lease = await cluster.get(LEASES, "ca-two", namespace="kube-system")
        assert lease.spec.holder_identity == ""

    story(main, tmp_path)


LONG_LEASE = ("--leader-elect-lease-duration=10m", "--leader-elect-renew-deadline=5m")


def ending(tmp_path, fault, retry_period):
    """Send SIGTERM to a leader and let ``fault(cluster, process, exchange)`` meet its requests from then on; return the lease's holder."""

    async def run(clock):
        async with served(clock) as (cluster, _, connection), proxied(connection) as (proxy, through):
            config = tmp_path / "kubeconfig"
            authority = through.authority.encode()
            write_kubeconfig(config, kubeconfig(through.url, token=TOKEN, authority=authority))
            await a_waiting_pod(cluster, clock)
            retry = f"--leader-elect-retry-period={retry_period}"
            async with running(tmp_path, config, *LONG_LEASE, retry) as process:
                await line_with(process, "leading by lease cluster-autoscaler")
                proxy.set(partial(fault, cluster, process))
                process.send_signal(signal.SIGTERM)
                await process.wait()
            lease = await cluster.get(LEASES, "cluster-autoscaler", namespace="kube-system")
            return lease.spec.holder_identity

    return run_real(run)


@pytest.mark.slow
def test_a_second_sigterm_cuts_nothing_off(tmp_path):
    """It comes while the lease is being let go of: that is done all the same, and the exit status is 0."""

    async def again(cluster, process, exchange):
        del cluster
        if exchange.method == "PUT" and exchange.is_about("leases"):
            process.send_signal(signal.SIGTERM)
            await asyncio.sleep(1)

    assert ending(tmp_path, again, "4m") == ""


@pytest.mark.slow
def test_a_lease_lost_while_a_process_ends_is_no_failure(tmp_path):
    """The server does not answer the last write, and another takes the lease: status 0 within seconds."""

    async def taken(cluster, process, exchange):
        del process
        if exchange.method != "DELETE":
            return None
        patch = {"spec": {"holderIdentity": "another"}}
        await cluster.patch(LEASES, "cluster-autoscaler", patch, namespace="kube-system")
        return await exchange.say_nothing()

    assert ending(tmp_path, taken, "200ms") == "another"


@pytest.mark.slow
def test_advice_writes_nothing(tmp_path):
    """With --advise it says what it would buy, and neither the cluster nor the cloud is written to."""

    async def main(cluster, config):
        version = (await cluster.list(PODS)).resource_version
        async with running(tmp_path, config, "--advise") as process:
            assert "only advises" in await line_with(process, "cluster https://127.0.0.1")
            await line_with(process, "group workers would be increased from 0 to 1")
        assert (await cluster.list(PODS)).resource_version == version
        assert not (await cluster.list(CONFIG_MAPS)).items
        assert not (tmp_path / "increases").exists()

    story(main, tmp_path)

"""A town on a real control plane: nodes that live, machines that can be bought, usage that a test decides.

The scheduler and the controllers are Kubernetes' own. Kubelets, cloud and usage are the embedded ones,
as clients of the API server; the loops run as ``kubetide run`` in processes of their own.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import signal
import ssl
import sys
from collections.abc import Callable
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import yaml
from tests.cluster.test_crontab import CONTROLLER
from tests.plane.kwok import kwok
from tests.plane.metric_apis import Values, metric_apis
from tests.plane.remote_cloud import Ledger, Report, serving
from tests.plane.running import Plane, running_plane
from tests.plane.usage_api import Load, usage_api

from kubetide.cluster import HttpCluster
from kubetide.embedded.apiserver.http.kubeconfig import write_kubeconfig
from kubetide.embedded.cloud import CloudFaults, EmbeddedCloud, GroupSpec
from kubetide.embedded.cloud.faults import NO_FAULTS
from kubetide.embedded.draws import Between, fixed
from kubetide.embedded.kubelet import KubeletPool, PodTimes
from kubetide.objects.kinds import CUSTOM_RESOURCE_DEFINITIONS, EVENTS, LEASES, NAMESPACES, NODES, PODS
from kubetide.objects.node import Node
from kubetide.objects.pod import Pod, pod_condition
from kubetide.ports.clock import Clock
from kubetide.ports.errors import NotFound
from kubetide.testing.cluster_cases.ground import goes
from kubetide.units.time import Duration, milliseconds, seconds, to_seconds
from kubetide.watching import Informer

ROOT = Path(__file__).parents[2]
CRON_TABS = CONTROLLER.CRON_TABS
ACCOUNT = "system:serviceaccount:kube-system:kubetide"
"""Whom the shipped roles are for."""

SOON = (
    "--scan-interval=1s",
    "--scale-down-unneeded-time=3s",
    "--scale-down-delay-after-add=3s",
    "--scale-down-delay-after-failure=3s",
    "--unremovable-node-recheck-timeout=1s",
    "--node-delete-delay-after-taint=1s",
    "--skip-nodes-with-custom-controller-pods=false",
    "--kube-api-qps=200",
    "--kube-api-burst=200",
)
"""Flags of a node loop that nobody has to wait long for."""

SILENT = "kubetide.test/silent"
"""Label of nodes that no kubelet speaks for."""

GRACE_S = 15
"""After so long without a word kube-controller-manager takes a node for lost."""

_PATIENCE = seconds(180)
_POLL = milliseconds(100)
_AUDIT_POLICY = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "Metadata"}]}
_TIMES = PodTimes(
    pull=fixed(milliseconds(200)),
    start=fixed(milliseconds(200)),
    ready=fixed(milliseconds(300)),
    stop=fixed(seconds(1)),
)


@contextmanager
def audited_plane(folder: Path):
    """A real control plane that writes down every request, misses a silent node soon, and lets HPAs scale to zero."""
    policy = folder / "audit-policy.yaml"
    policy.write_text(yaml.safe_dump(_AUDIT_POLICY))
    log = folder / "audit.log"
    with running_plane(
        folder,
        api_flags=(
            f"--audit-policy-file={policy}",
            f"--audit-log-path={log}",
            "--feature-gates=HPAScaleToZero=true",
        ),
        manager_flags=(f"--node-monitor-grace-period={GRACE_S}s", "--node-monitor-period=1s"),
    ) as plane:
        yield plane


@dataclass(frozen=True)
class Request:
    """A request as the audit log has it: who, what, and how it was answered."""

    verb: str
    resource: str
    namespace: str
    name: str
    code: int


def requests_of(plane: Plane, user: str) -> list[Request]:
    """Return the requests of a user that have been answered, in order."""
    found = []
    for line in (plane.folder.parent / "audit.log").read_text().splitlines():
        entry = json.loads(line)
        if entry["user"]["username"] != user or entry["stage"] != "ResponseComplete":
            continue
        about = entry.get("objectRef") or {}
        resource = "/".join(filter(None, (about.get("resource", ""), about.get("subresource", ""))))
        found.append(
            Request(
                entry["verb"],
                resource,
                about.get("namespace", ""),
                about.get("name", ""),
                entry["responseStatus"]["code"],
            )
        )
    return found


def app_of(pod: Pod) -> str:
    """Whose pod it is: the name of a Deployment, or of a CronTab."""
    labels = pod.metadata.labels or {}
    return next((labels[key] for key in ("app", "run", CONTROLLER.LABEL) if key in labels), "")


class Town:
    """The part of a town that a test sees.

    Attributes:
        cluster: The administrator's client.
        pods, nodes: Up-to-date caches of all of them.
        cloud: Its machines.
        ledger: What was asked of the cloud by other processes.
        load: What the pods of an app use together.
        values: What else is measured.
        socket: Where other processes find the cloud.
        home: A namespace of its own.
    """

    def __init__(self, plane: Plane, clock: Clock, cluster: HttpCluster, folder: Path, home: str) -> None:
        self.plane, self.clock, self.cluster, self.folder, self.home = plane, clock, cluster, folder, home
        self.pods: Informer[Pod] = Informer(cluster, PODS, clock)
        self.nodes: Informer[Node] = Informer(cluster, NODES, clock)
        self.load = Load(self.pods, app_of)
        self.values = Values()
        self.socket = str(folder / "cloud.sock")
        self.cloud: EmbeddedCloud
        self.ledger: Ledger

    async def until(self, what: str, holds: Callable[[], bool]) -> None:
        """Wait until something holds. Raises AssertionError with the town as it is when time is up."""
        deadline = self.deadline()
        while not holds():
            assert self.clock.monotonic() < deadline, f"waited in vain: {what}\n{self}"
            await self.pause()

    async def until_reported(self, kind: str, *reasons: str) -> None:
        """Wait until objects of a kind have events with these reasons; each is written after what it is about."""
        deadline = self.deadline()
        while True:
            events = (await self.cluster.list(EVENTS, namespace=self.home)).items
            found = {one.reason for one in events if one.involved_object.kind == kind}
            if found >= set(reasons):
                return
            assert self.clock.monotonic() < deadline, f"only {found} of {reasons} are reported\n{self}"
            await self.pause()

    def deadline(self) -> Duration:
        """The time at which a wait that begins now fails."""
        return Duration(self.clock.monotonic() + _PATIENCE)

    async def pause(self) -> None:
        """Between two looks."""
        await self.clock.sleep(_POLL)

    def running(self, app: str) -> list[Pod]:
        """The pods of an app that are ready and stay."""
        return [
            pod
            for pod in self.pods.objects.values()
            if app_of(pod) == app
            and (ready := pod_condition(pod, "Ready")) is not None
            and ready.status == "True"
            and pod.metadata.deletion_timestamp is None
        ]

    def pods_on(self, node: str) -> list[Pod]:
        return [pod for pod in self.pods.objects.values() if pod.spec.node_name == node]

    def nodes_with_taint(self, key: str) -> list[str]:
        return [
            node.metadata.name
            for node in self.nodes.objects.values()
            if any(taint.key == key for taint in node.spec.taints or ())
        ]

    def __str__(self) -> str:
        lines = [
            f"node {node.metadata.name}: {[taint.key for taint in node.spec.taints or ()]} "
            f"{[(c.type, c.status) for c in node.status.conditions or () if c.type == 'Ready']}"
            for node in self.nodes.objects.values()
        ]
        lines += [
            f"pod {name}: {pod.status.phase} on {pod.spec.node_name or 'none'}"
            f"{' being deleted' if pod.metadata.deletion_timestamp else ''}"
            for (_, name), pod in sorted(self.pods.objects.items())
        ]
        lines += [f"cloud: {self.cloud.counts()}", *map(str, self.ledger.calls), *self.ledger.refused]
        for log in sorted(self.folder.glob("*.out")):
            lines += [f"── {log.name}", *log.read_text().splitlines()[-40:]]
        return "\n".join(lines)


@asynccontextmanager
async def town(
    plane: Plane,
    clock: Clock,
    folder: Path,
    *groups: GroupSpec,
    by_kwok: bool = False,
    reported: Report = tuple,
    faults: CloudFaults = NO_FAULTS,
):
    """Let a town live on a plane, and leave the plane as it was.

    Args:
        reported: What the cloud says of its groups to other processes.
        by_kwok: Whether kwok plays the kubelets, and not the embedded ones.
        faults: What goes wrong in the cloud.
    """
    async with AsyncExitStack() as stack:
        if by_kwok:
            stack.enter_context(kwok(plane))
        cluster = await stack.enter_async_context(HttpCluster(plane.connection, clock))
        made = await cluster.create(NAMESPACES, {"metadata": {"generateName": "town-"}})
        place = Town(plane, clock, cluster, folder, made.metadata.name)
        place.cloud = EmbeddedCloud(cluster, clock, seed=1, groups=groups, faults=faults)
        parts = [place.pods.run(), place.nodes.run()]
        await together(stack, parts)
        await place.pods.synced()
        await place.nodes.synced()
        kubelets = KubeletPool(
            cluster,
            clock,
            pods=place.pods,
            nodes=place.nodes,
            seed=1,
            times=_TIMES,
            animates=lambda node: SILENT not in (node.metadata.labels or {}),
            lease_renewal=seconds(2),
        )
        await place.cloud.start()
        await together(stack, [place.cloud.run()] if by_kwok else [kubelets.run(), place.cloud.run()])
        stack.push_async_callback(_clear, place)
        place.ledger = await stack.enter_async_context(serving(place.cloud, place.socket, reported))
        # Requests no certificate: the aggregator shows one that another authority has signed.
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(plane.folder / "server.crt", plane.folder / "server.key")
        await stack.enter_async_context(
            usage_api(cluster, clock, tls, pods=place.pods, milli_of=place.load.of)
        )
        await stack.enter_async_context(
            metric_apis(cluster, clock, tls, place.values, pods=place.pods, load=place.load)
        )
        yield place


async def together(stack: AsyncExitStack, parts) -> None:
    """Run coroutines until the end of the stack; one that fails fails the test."""
    group = await stack.enter_async_context(asyncio.TaskGroup())
    tasks = [group.create_task(part) for part in parts]
    for task in tasks:
        stack.callback(task.cancel)


async def _clear(place: Town) -> None:
    """Take away what would be in the way of the next town."""
    await place.cluster.delete(NAMESPACES, place.home)
    await place.until("no pod is left", lambda: not place.pods.objects)
    for _, name in list(place.nodes.objects):
        try:
            await place.cluster.delete(NODES, name)
        except NotFound:
            continue
    for lease in ("kubetide", "cluster-autoscaler"):
        try:
            await place.cluster.delete(LEASES, lease, namespace="kube-system")
        except NotFound:
            continue


@asynccontextmanager
async def cron_tabs(place: Town):
    """Serve the custom kind of the example, with its controller at work."""
    definition = yaml.safe_load((ROOT / "examples/crontab/crd.yaml").read_text())
    await place.cluster.create(CUSTOM_RESOURCE_DEFINITIONS, definition)
    name = definition["metadata"]["name"]
    while True:
        try:
            await place.cluster.list(CRON_TABS)
        except NotFound:
            await place.clock.sleep(_POLL)
        else:
            break
    controller = asyncio.create_task(CONTROLLER.run(place.cluster, place.clock))
    try:
        yield
    finally:
        controller.cancel()
        await asyncio.gather(controller, return_exceptions=True)
        await place.cluster.delete(CUSTOM_RESOURCE_DEFINITIONS, name)
        # The next town defines it again.
        await goes(place.cluster, place.clock, CUSTOM_RESOURCE_DEFINITIONS, name, "")


class Process:
    """A ``kubetide run``; what it says lies in a file."""

    def __init__(self, process: asyncio.subprocess.Process, log: Path) -> None:
        self.process = process
        self.log = log

    def said(self, text: str) -> bool:
        return text in self.log.read_text()

    async def kill(self) -> None:
        """End it as the kernel does, at once."""
        self.process.kill()
        await self.process.wait()


def user_kubeconfig(plane: Plane, user: str, path: Path) -> Path:
    """Write the kubeconfig of a user, who may do everything unless it is a service account."""
    groups = () if user.startswith("system:serviceaccount:") else ("system:masters",)
    connection = plane.connection_of(user, *groups)

    def data(text: str) -> str:
        return base64.b64encode(text.encode()).decode()

    pair = {
        "client-certificate-data": data(connection.certificate),
        "client-key-data": data(connection.key),
    }
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "plane",
        "clusters": [
            {
                "name": "plane",
                "cluster": {
                    "server": plane.url,
                    "certificate-authority-data": data(connection.authority),
                },
            }
        ],
        "users": [{"name": user, "user": pair}],
        "contexts": [{"name": "plane", "context": {"cluster": "plane", "user": user}}],
    }
    write_kubeconfig(path, config)
    return path


@asynccontextmanager
async def kubetide_run(
    place: Town, user: str, *flags: str, name: str = "kubetide", cloud: tuple[str, ...] = ()
):
    """Start ``kubetide run`` in the town; return the Process. One that is still there must end well on SIGTERM.

    Args:
        cloud: Flags of another cloud than the town's.
    """
    towns = "--cloud-provider=tests.plane.remote_cloud:connected", f"--cloud-config={place.socket}"
    config = user_kubeconfig(place.plane, user, place.folder / f"{name}.kubeconfig")
    log = place.folder / f"{name}.out"
    with log.open("wb") as out:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            "from kubetide.cli.main import main; main()",
            "run",
            f"--kubeconfig={config}",
            f"--out={place.folder / name}",
            "--address=127.0.0.1:0",
            *(cloud or towns),
            "--adopt-hpas-after=0s",
            *flags,
            stdout=out,
            stderr=asyncio.subprocess.STDOUT,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])},
        )
    run = Process(process, log)
    try:
        yield run
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
            await asyncio.wait_for(process.wait(), to_seconds(_PATIENCE))
            assert process.returncode == 0, log.read_text()
    finally:
        if process.returncode is None:
            await run.kill()


MEDIUM = GroupSpec(
    name="medium",
    instance_type="m5.large",
    min_size=1,
    max_size=8,
    boot=Between(seconds(1), seconds(2)),
    ready=fixed(milliseconds(500)),
    shutdown=fixed(milliseconds(500)),
)
"""Machines of 1.93 cores."""

ROOMY = GroupSpec(
    name="roomy",
    instance_type="m5.4xlarge",
    min_size=1,
    max_size=1,
    boot=fixed(milliseconds(100)),
    ready=fixed(milliseconds(100)),
    shutdown=fixed(milliseconds(100)),
)
"""One machine of nearly 16 cores, for what is not about nodes."""

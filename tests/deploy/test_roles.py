"""The roles of the chart grant what the loops request, and nothing else."""

from __future__ import annotations

import asyncio

import pytest
from tests.cli.test_run import QUICK, Busy, a_busy_deployment, line_with, running
from tests.cluster.served import ADMIN, TOKEN, served
from tests.deploy.conftest import ACT, ALL, BOTH, CAPACITY, DRY_RUN, IDLEST, NOMINATE, UI
from tests.deploy.requests import Granted, Observed, account_of, granted_by, observed_horizontal
from tests.embedded.load.worlds import START as LOAD_START
from tests.embedded.load.worlds import World as LoadWorld
from tests.embedded.load.worlds import make_pod, make_service
from tests.horizontal.running import START
from tests.horizontal.worlds import external
from tests.nodes.live import SHORT
from tests.nodes.live import World as NodesWorld

from kubetide.cluster import (
    Connection,
    HttpCluster,
    HttpCustomMetrics,
    HttpExternalMetrics,
    HttpMetrics,
    plurals_of,
)
from kubetide.embedded.apiserver.http import Identities
from kubetide.embedded.apiserver.http.kubeconfig import kubeconfig, write_kubeconfig
from kubetide.embedded.load import (
    ConstantTrace,
    EmbeddedCustomMetrics,
    EmbeddedExternalMetrics,
    ExternalSeries,
)
from kubetide.loop import loop_entries
from kubetide.nodes.controller import NodesController
from kubetide.nodes.settings import Settings as NodesSettings
from kubetide.nodes.templates.keeping import CONFIG_MAP
from kubetide.objects.kinds import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    HPAS,
    PODS,
    REPLICATION_CONTROLLERS,
    STATEFUL_SETS,
    STORED_KINDS,
)
from kubetide.ports.errors import Conflict
from kubetide.runtime.handover.tracker import HpaOwners
from kubetide.runtime.permissions import roles
from kubetide.runtime.timing.clock import run_real, run_virtual
from kubetide.testing import builders
from kubetide.units.time import minutes, seconds
from kubetide.watching import Caches


def of_table(*, acting, values=()):
    """Return the roles of the program's own table, in the form that the chart renders with these values."""
    return {
        Granted(
            f"{role.kind} {role.name}",
            verb,
            grant.group,
            resource,
            "kube-system" if role.kind == "Role" else "",
            grant.names,
        )
        for role in roles()
        for grant in role.grants
        if (acting or not grant.acting) and (not grant.value or grant.value in values)
        for resource in grant.resources
        for verb in grant.verbs
    }


@pytest.mark.parametrize("acting", [False, True])
def test_the_chart_grants_what_the_table_says(rendered, acting):
    """The table behind the hints is the chart's, rule by rule, for a run that advises and for one that acts."""
    flags = [*ALL, *([ACT] if acting else [])]
    assert granted_by(rendered(*flags)) == of_table(acting=acting)
    assert granted_by(rendered(*flags, IDLEST)) == of_table(acting=acting, values={"options.idlestFirst"})
    assert granted_by(rendered(*flags, CAPACITY)) == of_table(acting=acting, values={"options.capacityApis"})
    nominating = of_table(acting=acting, values={"options.nominatePods"})
    assert granted_by(rendered(*flags, NOMINATE)) == nominating
    assert granted_by(rendered(*flags, DRY_RUN)) == of_table(acting=acting, values={"options.dryRunPods"})
    assert granted_by(rendered(*flags, UI)) == of_table(acting=acting, values={"ui.enabled"})


@pytest.mark.parametrize("acting", [False, True])
def test_loops_that_run_only_where_they_are_named_have_roles_too(rendered, acting):
    """Time tables and ElasticWorkloads: what their tables say."""
    granted = granted_by(
        rendered("--set=config.controllers={schedules,elastic,scaledobjects}", *([ACT] if acting else []))
    )
    said = [role for entry in loop_entries(("schedules", "elastic", "scaledobjects")) for role in entry.roles]
    assert {one for one in granted if one.role.startswith("ClusterRole")} == {
        Granted(f"{role.kind} {role.name}", verb, grant.group, resource, "", ())
        for role in said
        for grant in role.grants
        if acting or not grant.acting
        for resource in grant.resources
        for verb in grant.verbs
    }


def test_a_loop_that_does_not_run_gets_nothing(rendered):
    """With one loop there are only its roles and its Lease."""
    granted = granted_by(rendered(ACT))
    assert {one.role for one in granted} == {"ClusterRole kubetide-horizontal", "Role kubetide-leases"}
    assert {name for one in granted for name in one.names} == {"kubetide"}


# ── what is asked ──


class ConflictOnce:
    """The first write of a scale meets another's."""

    def __init__(self):
        self.left = 1

    async def before(self, request):
        if request.subresource == "scale" and request.verb != "get" and self.left:
            self.left -= 1
            raise Conflict("the object has been modified")


@pytest.fixture(scope="module")
def of_horizontal():
    """What the horizontal loop asks at the Cluster port: targets with and without a cache, a conflict, failing metrics."""

    async def main(clock):
        world, seen = observed_horizontal(clock, measures=True, advises=True)
        world.usage.milli = 200
        await world.add()
        body = builders.deployment("db", replicas=1) | {"kind": "StatefulSet"}
        body["spec"]["serviceName"] = "db"
        await world.cluster.create(STATEFUL_SETS, body, namespace="default")
        hpa = builders.hpa("db", "db")
        hpa["spec"]["scaleTargetRef"] = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db"}
        hpa["spec"]["metrics"] = [external({"averageValue": "5"})]
        await world.cluster.create(HPAS, hpa, namespace="default")
        world.measured.answers["external", "default", "queue", ""] = [20_000]
        world.cluster.faults = ConflictOnce()
        owners = asyncio.create_task(HpaOwners(Observed(world.cluster, seen), clock, lambda _: None).run())
        async with world.running():
            await clock.sleep(seconds(16))
            assert await world.replicas() == 4
            found = await world.cluster.get(STATEFUL_SETS, "db", namespace="default")
            assert found.spec.replicas == 4
            world.usage.error = "the server is currently unable to handle the request"
            await clock.sleep(seconds(60))
        assert owners.cancel()
        return seen

    return run_virtual(main, start=START)


@pytest.fixture(scope="module")
def of_nodes():
    """What the node loop asks: nodes come, are drained and go; a pod fits nowhere for long, some have claims."""

    async def main(clock):
        world, seen = NodesWorld(clock), set()
        observed = Observed(world.cluster, seen)
        world.caches = Caches(observed, clock)
        world.controller = NodesController(
            observed,
            world.cloud,
            clock,
            world.recorder,
            world.board,
            NodesSettings(**SHORT, expander="priority,least-waste"),
            seed=1,
            caches=world.caches,
        )
        store = world.cluster._store
        store.serve(REPLICATION_CONTROLLERS)
        old = {"metadata": {"name": "old", "namespace": "default", "uid": "u"}}
        store.put(
            REPLICATION_CONTROLLERS,
            ("default", "old"),
            {"apiVersion": "v1", "kind": "ReplicationController", **old},
        )
        # An earlier process has learned something.
        await world.cluster.create(CONFIG_MAPS, {"metadata": {"name": CONFIG_MAP}}, namespace="kube-system")
        async with world.running():
            await world.deploy(replicas=6, cpu="900m")
            await world.deploy("giant", replicas=1, cpu="90")
            data = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
            await world.cluster.create(
                PODS, builders.pod("kept", extra={"spec": {"volumes": data}}), namespace="default"
            )
            await clock.sleep(minutes(5))
            assert len(world.nodes) > 2
            await world.scale("web", 2)
            await clock.sleep(minutes(15))
            assert len(world.nodes) <= 2
            gated = {
                "resourceClaims": [{"name": "gpu", "resourceClaimName": "gpu"}],
                "schedulingGates": [{"name": "example.com/wait"}],
            }
            owner = {
                "apiVersion": "v1",
                "kind": "ReplicationController",
                "name": "old",
                "uid": "u",
                "controller": True,
            }
            extra = {"metadata": {"ownerReferences": [owner]}, "spec": gated}
            await world.cluster.create(PODS, builders.pod("learning", extra=extra), namespace="default")
            await clock.sleep(minutes(1))
        await world.controller.close()
        return seen

    return run_virtual(main, start=START)


@pytest.fixture(scope="module")
def of_the_program(rendered, tmp_path_factory):
    """What `kubetide run --act` asks a server, as the account of the chart; it scales, and is refused nothing."""
    seen, folder = set(), tmp_path_factory.mktemp("program")

    async def main(clock):
        identities = Identities({TOKEN: ADMIN, "account": account_of(granted_by(rendered(ACT)), seen)})
        metrics = Busy(clock, ["web-0", "web-1"])
        async with served(clock, metrics=metrics, identities=identities) as (cluster, server, connection):
            config = folder / "kubeconfig"
            authority = connection.authority.encode()
            write_kubeconfig(config, kubeconfig(server.url, token="account", authority=authority))
            await a_busy_deployment(cluster, clock)
            async with running(config, folder / "out", QUICK, "--act", "--adopt-hpas-after=0s") as process:
                await line_with(process, "scaled from 2 to 4")
            assert (await cluster.get(DEPLOYMENTS, "web", namespace="default")).spec.replicas == 4

    run_real(main)
    return seen


@pytest.fixture(scope="module")
def of_metrics(rendered):
    """What the metric sources ask a server, as the account of the chart that only advises."""
    seen = set()

    async def main(clock):
        world = LoadWorld(make_service(33.3))
        world.put(make_pod("a"))
        world.to(60)
        series = [ExternalSeries("waiting", ConstantTrace(7.0), {}, "")]
        identities = Identities({TOKEN: ADMIN, "account": account_of(granted_by(rendered()), seen)})
        async with (
            served(
                clock,
                metrics=world.metrics,
                custom=EmbeddedCustomMetrics(world.model, world.clock),
                external=EmbeddedExternalMetrics(series, world.clock, start=LOAD_START, step=seconds(15)),
                identities=identities,
            ) as (_, server, connection),
            HttpCluster(Connection(server.url, "account", connection.authority), clock) as client,
        ):
            usage, waiting = HttpMetrics(client, clock), HttpExternalMetrics(client)
            custom = HttpCustomMetrics(client, clock, plural_of=plurals_of(STORED_KINDS))
            await usage.pod_samples()
            await usage.pod_samples("default", "app=web")
            await custom.pod_values("http_requests_per_second", namespace="default")
            about = {"namespace": "default", "api_version": "apps/v1", "kind": "Deployment", "name": "web"}
            await custom.object_value("requests_per_second", **about)
            await waiting.external_values("waiting", namespace="default")

    run_real(main)
    return seen


# ── what is granted ──


def test_what_is_asked_is_granted_and_what_is_granted_is_asked(
    rendered, of_horizontal, of_nodes, of_the_program, of_metrics
):
    """Each loop's requests are allowed by its own roles, and each verb on each resource of a role is used by its loop."""
    granted = granted_by(rendered(*BOTH, ACT))
    leases = {one for one in granted if one.role == "Role kubetide-leases"}
    horizontal = {one for one in granted if one.role == "ClusterRole kubetide-horizontal"}
    nodes = granted - leases - horizontal
    for rules, requests in (
        (horizontal, of_horizontal | of_metrics),
        (horizontal | leases, of_the_program),
        (nodes, of_nodes),
    ):
        refused = {request for request in requests if not any(one.allows(request) for one in rules)}
        assert refused == set()
    used = {
        one
        for rules, requests in ((nodes, of_nodes), (leases, of_the_program))
        for one in rules
        if any(one.allows(request) for request in requests)
    } | {one for one in horizontal if any(map(one.allows, of_horizontal | of_the_program | of_metrics))}
    assert granted - used == set()

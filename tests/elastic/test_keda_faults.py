"""ScaledObjects when servers, writes, clocks and deletions are not as they should be."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pytest
from tests.elastic.scaled_objects import EXTERNAL, NOW, PROMETHEUS, START, answer, source
from tests.elastic.scalers import QueueScaler, serving
from tests.tasks import stop

from kubetide.elastic.keda.client import ExternalScalers
from kubetide.elastic.keda.commands import Outcome
from kubetide.elastic.keda.controller.controller import ScaledObjectsController
from kubetide.elastic.keda.controller.owning import QueueMetrics
from kubetide.elastic.keda.decide import decide
from kubetide.elastic.keda.outcomes import absorb
from kubetide.elastic.keda.reasons import VOCABULARY
from kubetide.elastic.keda.servers import Servers
from kubetide.elastic.keda.state import Answer, Delta, State
from kubetide.elastic.keda.triggers import Trigger
from kubetide.embedded.apiserver.store import EmbeddedCluster, Store
from kubetide.loop import NoSettings, Parts
from kubetide.objects.kinds import DEPLOYMENTS, SCALED_OBJECTS, STORED_KINDS, TIME_TABLE_KINDS
from kubetide.plan.board import Board
from kubetide.ports.errors import MetricsError, Unavailable
from kubetide.runtime.timing.clock import run_real, run_virtual
from kubetide.testing import builders
from kubetide.units.time import Instant, after, hours, minutes, seconds
from kubetide.watching import Caches


class FlakyCluster(EmbeddedCluster):
    """Fails as many writes of statuses as ``failures`` says."""

    failures = 0

    async def patch(self, kind, name, patch, **how):
        if self.failures and kind is SCALED_OBJECTS:
            self.failures -= 1
            raise Unavailable("try again")
        return await super().patch(kind, name, patch, **how)


class Silent:
    """Keeps no records."""

    def wants_full(self, loop):
        return False

    def write(self, record):
        pass


@asynccontextmanager
async def controller(clock, *addresses):
    """A controller beside a ScaledObject of one trigger per address, whose deletion waits for a finalizer."""
    cluster = FlakyCluster(Store((*STORED_KINDS, *TIME_TABLE_KINDS)), clock, seed=1)
    await cluster.create(DEPLOYMENTS, builders.deployment("worker", replicas=3), namespace="default")
    triggers = [
        {"type": "external", "metadata": {"scalerAddress": one, "list": "orders", "target": "5"}}
        for one in addresses
    ]
    spec = {"scaleTargetRef": {"name": "worker"}, "pollingInterval": 1, "triggers": triggers}
    meta = {"name": "worker", "finalizers": ["finalizer.keda.sh"]}
    await cluster.create(SCALED_OBJECTS, {"metadata": meta, "spec": spec}, namespace="default")
    caches = Caches(cluster, clock)
    parts = Parts(cluster=cluster, clock=clock, recorder=Silent(), caches=caches, board=Board())
    made = ScaledObjectsController(parts, NoSettings())
    task = asyncio.create_task(caches.run())
    await made.synced()
    await made.tick()
    try:
        yield made, cluster
    finally:
        await made.close()
        await stop(task)


def shown(loop):
    """The names of the metrics of the HPA that the horizontal loop is shown."""
    return [
        metric.external.metric.name
        for found in loop.shows.shown.by_resource["horizontalpodautoscalers.autoscaling"].values()
        for metric in found.spec.metrics
    ]


def test_a_server_that_is_silent_takes_its_metric_from_no_hpa():
    """With two triggers the HPA keeps both metrics while one server is down, so that it takes nothing away."""

    async def run(clock):
        first, second = QueueScaler(lambda _: 20), QueueScaler(lambda _: 9)
        async with (
            serving(first) as one,
            serving(second) as other,
            controller(clock, one, other) as (loop, _),
        ):
            assert shown(loop) == ["s0-waiting", "s1-waiting"]
            second.error = "restarting"
            await clock.sleep(seconds(1.1))
            await loop.tick()
            assert shown(loop) == ["s0-waiting", "s1-waiting"]
            assert "triggers[1]" in loop.state.memory["default", "worker"].warned[0]

    run_real(run)


def test_a_server_that_is_silent_after_a_restart_takes_nothing_away():
    """Its metric is not known yet: one without a value stands for it, so that the HPA does not go by the others alone."""

    async def run(clock):
        first, second = QueueScaler(lambda _: 20), QueueScaler(lambda _: 9)
        second.error = "restarting"
        async with (
            serving(first) as one,
            serving(second) as other,
            controller(clock, one, other) as (loop, cluster),
        ):
            assert shown(loop) == ["s0-waiting", "s1-unknown"]
            found = await cluster.get(SCALED_OBJECTS.untyped, "worker", namespace="default")
            assert found["status"]["externalMetricNames"] == ["s0-waiting"]
            metrics = QueueMetrics(None, loop.shows, loop.servers, clock)
            second.error = ""
            with pytest.raises(MetricsError, match="has not named its metrics yet"):
                await metrics.external_values(
                    "s1-unknown", namespace="default", selector="scaledobject.keda.sh/name=worker"
                )
            await clock.sleep(seconds(1.1))
            await loop.tick()
            assert shown(loop) == ["s0-waiting", "s1-waiting"]

    run_real(run)


def test_the_connection_to_a_server_that_nobody_names_is_closed():
    """An address of an object that is gone is not held, nor asked for ever; one that is still named is."""

    async def run(clock):
        async with (
            serving(QueueScaler(lambda _: 20)) as one,
            serving(QueueScaler(lambda _: 9)) as other,
            controller(clock, one, other) as (loop, cluster),
        ):
            spec = {
                "triggers": [
                    {"type": "external", "metadata": {"scalerAddress": other, "list": "a", "target": "5"}}
                ]
            }
            await cluster.patch(SCALED_OBJECTS, "worker", {"spec": spec}, namespace="default")
            await clock.sleep(seconds(0.2))
            await loop.tick()
            external = loop.servers._by_type["external"]
            assert external.addresses == {other}
            await cluster.delete(SCALED_OBJECTS, "worker", namespace="default")
            await clock.sleep(seconds(0.2))
            await loop.tick()
            assert external.addresses == frozenset()

    run_real(run)


@pytest.mark.slow
def test_a_server_that_hangs_is_left_alone():
    """A hundred objects of it would make all others late: after a few questions none is asked for a while, by neither loop."""

    class Hanging(QueueScaler):
        questions = 0

        async def check(self, context):
            self.questions += 1
            await asyncio.Event().wait()

    hanging = Hanging(lambda _: 20)

    async def run(clock):
        async with serving(hanging) as one, serving(QueueScaler(lambda _: 9)) as other:
            servers = Servers(clock)
            data = {"list": "orders", "target": "5"}
            of_one = {"type": "external", "metadata": {"scalerAddress": one, **data}}
            of_other = {"type": "external", "metadata": {"scalerAddress": other, **data}}

            async def problem(number):
                found = source(of_one, name=f"worker-{number}")
                with pytest.raises(MetricsError) as error:
                    await servers.is_active(found, found.triggers[0])
                return str(error.value)

            first = await asyncio.gather(*map(problem, range(3)))
            assert set(first) == {f"the source of metrics at {one} did not answer within 3s"}
            later = await asyncio.gather(*map(problem, range(100)))
            assert "did not answer 3 questions in a row; it is asked again within 1m0s" in later[0]
            assert hanging.questions == 3
            healthy = source(of_other)
            assert await servers.is_active(healthy, healthy.triggers[0])
            await servers.close()

    run_real(run)


def test_connections_are_closed_at_once():
    """A question that is not answered yet holds up no other, and has its answer."""

    class Held(QueueScaler):
        def __init__(self):
            super().__init__(lambda _: 20)
            self.asked_one, self.may_answer = asyncio.Event(), asyncio.Event()

        async def check(self, context):
            self.asked_one.set()
            await self.may_answer.wait()

    async def run(_clock):
        scalers, held = ExternalScalers(), [Held(), Held()]
        async with serving(held[0]) as one, serving(held[1]) as other:
            triggers = [Trigger(0, address, {"list": "a"}) for address in (one, other)]
            asked = [asyncio.create_task(scalers.is_active(source(), each)) for each in triggers]
            for each in held:
                await each.asked_one.wait()
            closing = asyncio.create_task(scalers.keep(()))
            await asyncio.sleep(0)
            assert scalers.addresses == frozenset()
            held[1].may_answer.set()
            assert await asked[1]
            assert not closing.done()
            held[0].may_answer.set()
            assert await asked[0]
            await closing
            await scalers.close()

    run_real(run)


def test_a_status_whose_write_fails_is_written_at_the_next_tick():
    """The status shows what is, also where nothing changes any more."""

    async def run(clock):
        scaler = QueueScaler(lambda _: 0)
        async with serving(scaler) as address, controller(clock, address) as (loop, cluster):
            scaler.error, cluster.failures = "restarting", 1
            ready = []
            for _ in range(3):
                found = await cluster.get(SCALED_OBJECTS.untyped, "worker", namespace="default")
                ready.append(found["status"]["conditions"][0]["reason"])
                await clock.sleep(seconds(1.1))
                await loop.tick()
            assert ready == ["ScaledObjectReady", "ScaledObjectReady", "TriggerError"]

    run_real(run)


def test_an_object_that_is_being_deleted_is_no_longer_followed():
    """KEDA's finalizer, which nobody takes away without KEDA, keeps no workload under an autoscaler."""

    async def run(clock):
        async with (
            serving(QueueScaler(lambda _: 20)) as address,
            controller(clock, address) as (loop, cluster),
        ):
            assert shown(loop)
            await cluster.delete(SCALED_OBJECTS, "worker", namespace="default")
            await clock.sleep(seconds(0.2))
            await loop.tick()
            assert shown(loop) == []
            assert loop.state.sources == {}

    run_real(run)


def test_a_target_of_0_is_an_error_of_the_server():
    """An HPA with it could not be, and says nothing."""

    async def run(clock):
        class Careless(QueueScaler):
            async def GetMetricSpec(self, request, context):
                request.scalerMetadata["target"] = "0.0004"
                return await super().GetMetricSpec(request, context)

        async with serving(Careless(lambda _: 20)) as address, controller(clock, address) as (loop, _):
            assert "the target of waiting is 0" in loop.state.memory["default", "worker"].warned[0]
            assert shown(loop) == []

    run_real(run)


@pytest.mark.parametrize("threshold", ["1e308", "1e17"])
def test_a_threshold_that_is_no_quantity_is_refused(threshold):
    """It would end the pass of all objects."""
    given = source({**PROMETHEUS, "metadata": {**PROMETHEUS["metadata"], "threshold": threshold}})
    assert "is no number" in given.refused[0]


@pytest.mark.parametrize(
    "address", ["//x", "prometheus:9090", "http://", "http://[::1", "http://p:99999", "ftp://p"]
)
def test_an_address_that_no_request_can_be_sent_to_is_refused(address):
    """A client failed at it in ways of its own, which ended the pass of all objects."""
    given = source({**PROMETHEUS, "metadata": {**PROMETHEUS["metadata"], "serverAddress": address}})
    assert given.refused == (
        f"triggers[0].metadata.serverAddress: {address!r} is no URL such as http://prometheus:9090",
    )


@pytest.mark.parametrize("trigger", [PROMETHEUS, EXTERNAL], ids=["prometheus", "external"])
def test_in_virtual_time_a_server_does_not_answer(trigger):
    """A simulation has no connections: the server of a trigger is one that cannot be asked."""
    given = source(trigger)

    async def main(clock):
        servers = Servers(clock)
        with pytest.raises(MetricsError, match="virtual time has no sockets"):
            await servers.is_active(given, given.triggers[0])
        await servers.close()

    run_virtual(main, start=START)


def test_objects_are_queried_again_after_the_clock_was_ahead():
    """A year ahead for one look: the object is due at once by the true time, and rests no year after its last work."""
    state, key = State(), ("shop", "worker")
    ahead = Instant(START + hours(24 * 365))
    state.apply(Delta(sources=(source(),), answers=(Answer(key, True, "", (), 3, "1"),)))
    absorb(state, decide(state, ahead), [], ahead)
    assert state.due(NOW) == [key]
    state.apply(Delta(answers=(answer(3),)))
    absorb(state, decide(state, NOW), [], NOW)
    assert state.due(Instant(NOW + seconds(10))) == []
    later = after(NOW, minutes(6))
    state.apply(Delta(answers=(answer(3),)))
    assert [one.replicas for one in decide(state, later).writes] == [0]


def test_a_size_that_is_only_advised_is_told_as_such():
    """Nobody is notified at each turn of a start that is not made."""
    state = State()
    state.apply(Delta(sources=(source(),), answers=(answer(0, active=True),)))
    result = absorb(state, decide(state, NOW), [Outcome(withheld=True)], NOW)
    [reason] = result.reasons
    assert VOCABULARY.is_fruitless(reason)
    assert VOCABULARY.text(reason).endswith("its target would go from 0 to 1 replicas; this run only advises")
    assert result.notices == ()

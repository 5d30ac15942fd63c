"""What Kubernetes 1.37's controller does otherwise than 1.36's, and what makes the loop follow which."""

from __future__ import annotations

import msgspec
import pytest
from tests.horizontal import worlds
from tests.horizontal.running import play

from kubetide.horizontal.decide import absorb, decide
from kubetide.horizontal.facts.views import StatusView
from kubetide.horizontal.settings import FeatureGates, Settings
from kubetide.horizontal.state import Delta
from kubetide.loop.flags import FlagError
from kubetide.loop.settings import parse_flags
from kubetide.units.time import Instant, minutes, seconds

QUEUE = ("external", "default", "queue", "")
EMPTY_QUEUE = worlds.external({"averageValue": "10"})


def metrics(*given, **spec):
    return {"extra": {"spec": {"metrics": list(given), **spec}}}


@pytest.mark.parametrize(("version", "observed"), [("1.36", [None, None, None]), ("1.37", [4, 4, 5])])
def test_a_status_says_which_spec_it_is_about(version, observed):
    """With 1.37 a status has the generation of the HPA as read, also where all else stays the same; with 1.36 none."""
    hpa = msgspec.structs.replace(worlds.hpa(), generation=4)
    state = worlds.state_of(
        hpas=[hpa],
        pods=[worlds.pod("web-0")],
        scales=[worlds.scale(replicas=1)],
        usage={("default", "web-0"): 100},
        settings=Settings(kubernetes_version=version),
    )
    found, changes = [], []
    for tick in range(3):
        now = Instant(worlds.NOW + tick * seconds(15))
        newer = msgspec.structs.replace(hpa, generation=5)
        usage = worlds.answer({("default", "web-0"): 100})
        state.apply(Delta(hpas=[newer] if tick == 2 else [], answers=[usage]))
        [settled] = absorb(state, decide(state, now), ()).settlements
        found.append(settled.status.observed_generation)
        changes.append(settled.changes)
    assert found == observed
    assert changes[1:] == [(), ("observedGeneration",) if version == "1.37" else ()]


def test_an_older_status_loses_what_it_observed():
    """With 1.36 a status that another controller has written is written anew without its generation, as upstream does it."""
    state = worlds.state_of(
        hpas=[worlds.hpa()],
        pods=[worlds.pod("web-0")],
        scales=[worlds.scale(replicas=1)],
        usage={("default", "web-0"): 100},
    )
    [first] = absorb(state, decide(state, worlds.NOW), ()).settlements
    written = msgspec.structs.replace(first.status, observed_generation=3)
    state.apply(Delta(statuses=[StatusView("default", "web", written)]))
    [second] = absorb(state, decide(state, Instant(worlds.NOW + seconds(15))), ()).settlements
    assert "observedGeneration" in second.changes
    assert second.status.observed_generation is None


@pytest.mark.parametrize(
    ("version", "gates", "comes_back"),
    [
        ("1.36", FeatureGates(), False),
        ("1.37", FeatureGates(), True),
        ("1.37", FeatureGates(scale_to_zero=False), False),
    ],
)
def test_the_way_back_from_zero(version, gates, comes_back):
    """A workload that the loop scaled to zero comes back with 1.37, and with 1.36 only where the gate is on."""

    async def story(world):
        world.measured.answers = {QUEUE: [0]}
        await world.add(min_replicas=0, **metrics(EMPTY_QUEUE))
        async with world.running():
            await world.clock.sleep(minutes(6))
            assert await world.replicas() == 0
            await world.show_replicas(0)
            world.measured.answers = {QUEUE: [25_000]}
            await world.clock.sleep(seconds(31))
            assert (await world.replicas() == 3) is comes_back
            zero = [one for one in (await world.hpa()).status.conditions if one.type == "ScaledToZero"]
            assert [(one.status, one.reason) for one in zero] == (
                [("False", "NotScaledToZero")] if comes_back else []
            )

    play(story, kubernetes_version=version, gates=gates)


@pytest.mark.parametrize(("version", "replicas"), [("1.36", 2), ("1.37", 4)])
def test_the_first_look(version, replicas):
    """1.37 looks at all HPAs when it starts, 1.36 a period later."""

    async def story(world):
        world.usage.milli = 200
        await world.add()
        async with world.running():
            await world.clock.sleep(seconds(1))
            return await world.replicas()

    assert play(story, kubernetes_version=version) == replicas


@pytest.mark.parametrize(
    ("version", "said"),
    [("1.36", "hits: Ingress on default main/"), ("1.37", "hits on Ingress default/main: ")],
)
def test_the_words_about_an_object(version, said):
    """The error of an object's metric names the object in the order of each version."""

    async def story(world):
        await world.add(**metrics(worlds.of_object({"value": "10"})))
        async with world.running():
            await world.clock.sleep(seconds(20))
            [active] = [one for one in (await world.hpa()).status.conditions if one.type == "ScalingActive"]
            assert f"unable to get metric {said}" in active.message

    play(story, kubernetes_version=version)


def test_a_shared_selector_names_two():
    """Of three HPAs whose targets have the same pods, 1.37 names two."""
    names = ("one", "three", "two")
    state = worlds.state_of(
        hpas=[worlds.hpa(name) for name in names],
        pods=[worlds.pod("web-0")],
        scales=[msgspec.structs.replace(worlds.scale(name), selector="app=web") for name in names],
        usage={("default", "web-0"): 100},
        settings=Settings(kubernetes_version="1.37"),
    )
    absorb(state, decide(state, worlds.NOW), ())
    verdicts = decide(state, Instant(worlds.NOW + seconds(15))).verdicts
    text = "pods by selector app=web are controlled by more than one HPA (e.g. [default/one default/three])"
    assert [[event.message for event in one.events] for one in verdicts] == [[text]] * 3


def test_tolerances_of_hpas_count_whatever_the_gate_says():
    """The gate of tolerances is locked in 1.37."""
    off = FeatureGates(configurable_tolerance=False)
    assert not Settings(gates=off).has_own_tolerances
    assert Settings(gates=off, kubernetes_version="1.37").has_own_tolerances


def test_a_version_without_known_rules_is_refused():
    """The flag takes the versions whose rules are known; what loops follow without it is said at the start."""
    with pytest.raises(FlagError, match=r"--kubernetes-version=1\.35: write 1\.36 or 1\.37"):
        parse_flags({"kubernetes-version": "1.35"})
    for written in ("1.37", 1.37):
        assert parse_flags({"kubernetes-version": written}).kubernetes_version == "1.37"
    unset = parse_flags({})
    assert unset.kubernetes_version == ""
    assert unset.with_kubernetes_version("1.37").of(Settings).minor == 37

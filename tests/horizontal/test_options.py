"""The rules that annotations turn on: each by itself, and none without its annotation."""

from __future__ import annotations

import msgspec
import pytest
from tests.horizontal import worlds
from tests.horizontal.option_states import KEY, NOW, codes, desired, state_of
from tests.horizontal.running import play

from kubetide.horizontal.core import HorizontalCore, encode_delta
from kubetide.horizontal.decide import absorb, decide
from kubetide.horizontal.decision import ScaleOutcome
from kubetide.horizontal.explain.answers import explain
from kubetide.horizontal.memory import Change, OptionMemory
from kubetide.horizontal.options.annotations import NO_OPTIONS, PREFIX, Fallback, read_options
from kubetide.horizontal.options.flapping import flap_report
from kubetide.horizontal.rules.evaluate import evaluate
from kubetide.horizontal.settings import Settings
from kubetide.horizontal.state import Delta
from kubetide.objects.kinds import DEPLOYMENTS, HPAS, PODS, REPLICA_SETS
from kubetide.objects.pod import DELETION_COST
from kubetide.testing import builders
from kubetide.units.time import after, format_rfc3339, minutes, seconds


def test_without_annotations_nothing_is_on():
    """Annotations of others are not read, and an HPA without ours has no options and no memory of them."""
    assert read_options({}) is NO_OPTIONS
    state = state_of(200)
    absorb(state, decide(state, NOW), [ScaleOutcome(*KEY, NOW)])
    assert state.options == {}
    assert b"annotations" not in encode_delta(state.dump())


@pytest.mark.parametrize(
    ("name", "text", "field", "value"),
    [
        ("sync-period", "1m30s", "sync_period", seconds(90)),
        ("tolerance", "0.05", "tolerance", 0.05),
        ("fallback", "static=5", "fallback", Fallback("static", 5)),
        ("fallback", " last-good ", "fallback", Fallback("last-good")),
        ("pause", "in", "pause", "in"),
        ("flap-report", "true", "flap_report", True),
        ("idlest-first", "false", "idlest_first", False),
    ],
)
def test_annotations_are_read(name, text, field, value):
    """Each has its form."""
    found = read_options({PREFIX + name: text})
    assert (getattr(found, field), found.problems) == (value, ())


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("sync-period", "soon"), ("sync-period", "-1m"), ("sync-period", "0"), ("tolerance", "nan"),
        ("tolerance", "-0.1"), ("tolerance", "ten"), ("fallback", "static"), ("fallback", "static=-1"),
        ("fallback", "average"), ("pause", "yes"), ("flap-report", "on"), ("unheard", "true"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_reported_and_counts_as_not_there(name, text):
    """A warning names the annotation and what to write; the HPA is decided about as without it."""
    state = state_of(200, **{name: text})
    verdict = evaluate(state, KEY, NOW)
    [event] = verdict.events
    assert (event.type, event.reason) == ("Warning", "InvalidAnnotation")
    assert event.message.startswith(PREFIX + name)
    assert verdict.desired == 4
    assert msgspec.structs.astuple(state.views[KEY].spec) == msgspec.structs.astuple(worlds.hpa().spec)


def test_a_tolerance_of_its_own():
    """It replaces the flag's tolerance; a direction that states one in its behavior uses that."""
    assert desired(state_of(106)) == 2
    assert desired(state_of(106, tolerance="0.05")) == 3
    stated = {"behavior": {"scaleUp": {"tolerance": "0.2"}}}
    assert desired(state_of(106, tolerance="0.05", spec=stated)) == 2


def test_a_sync_period_of_its_own():
    """Between two decisions nothing changes, not even the status; after the period it is decided about again."""
    state = state_of(200, sync_period="1m")
    writes = []
    for tick in range(6):
        now = after(NOW, seconds(15 * tick))
        commands = decide(state, now)
        result = absorb(state, commands, [ScaleOutcome(*KEY, now, "refused")] if commands.writes else [])
        writes.append(len(commands.writes))
        if not commands.writes:
            assert result.settlements[0].changes == ()
    assert writes == [1, 0, 0, 0, 1, 0]


@pytest.mark.parametrize(("period", "ticks"), [(1, 1), (15, 1), (16, 2), (20, 2), (30, 2), (60, 4)])
def test_a_sync_period_between_two_ticks_is_rounded_up(period, ticks):
    """It is the least time between two decisions; a decision that came late puts the next one off no further."""
    for late in (0, 5):
        memory = OptionMemory(looked_at=NOW + seconds(late))
        state = state_of(100, memory=memory, sync_period=f"{period}s")
        stages = [evaluate(state, KEY, after(NOW, seconds(15 * tick))).stage for tick in range(1, ticks + 1)]
        assert stages == ["waiting"] * (ticks - 1) + ["decided"]


def test_the_explanation_of_one_that_is_not_due():
    """It says what would be decided, and when the HPA is due."""
    state = state_of(200, memory=OptionMemory(looked_at=NOW), sync_period="1m")
    [_, answer, *_] = explain(state, KEY, after(NOW, seconds(15))).lines()
    assert answer == (
        "It has 2 replicas, wants 4 (cpu utilization 100% of 50%), and is to be scaled to 4 at "
        f"{format_rfc3339(after(NOW, minutes(1)))}, when its own sync period is over."
    )


@pytest.mark.parametrize(("pause", "up", "down"), [("all", 2, 2), ("out", 2, 1), ("in", 4, 2), ("", 4, 1)])
def test_a_pause_holds_its_direction(pause, up, down):
    """A pause holds out, in or both; the recommendation is still remembered, and the condition names the held direction."""
    options = {"pause": pause} if pause else {}
    state = state_of(200, **options)
    verdict = evaluate(state, KEY, NOW)
    assert verdict.desired == up
    assert verdict.raw == 4
    assert ("Paused" in codes(state)) == (up == 2)
    assert desired(state_of(10, **options)) == down
    if up == 2:
        assert verdict.notes[-1].reason == "Paused"
        assert "scaling to 4 is paused" in verdict.notes[-1].message


def test_a_pause_holds_bounds_too():
    """Below its minimum a paused target stays where it is."""
    assert desired(state_of(spec={"minimum": 5}, pause="all")) == 2
    assert desired(state_of(spec={"minimum": 5}, pause="in")) == 5


@pytest.mark.parametrize(
    ("fallback", "memory", "expected"),
    [
        ("static=7", None, 4),
        ("static=3", None, 3),
        ("current", None, 2),
        ("last-good", OptionMemory(last_good=3), 3),
        ("last-good", None, None),
    ],
)
def test_a_fallback_replaces_metrics_that_fail(fallback, memory, expected):
    """Policies and bounds hold as for any proposal: at most double at once; without a last good one the number stays."""
    state = state_of(usage={}, fallback=fallback, memory=memory)
    verdict = evaluate(state, KEY, NOW)
    if expected is None:
        assert (verdict.stage, verdict.rescale) == ("uncomputed", False)
        return
    assert (verdict.stage, verdict.desired, verdict.fallback) == ("decided", expected, True)
    active = [note for note in verdict.notes if note.type == "ScalingActive"]
    assert [note.reason for note in active] == ["FallbackInUse"]
    assert "FellBack" in codes(state)


def test_a_fallback_is_not_for_the_tolerance():
    """Of a metric that asks for less, while another fails, nothing would come without the tolerance either."""
    state = state_of(20, spec={"metrics": [worlds.utilization(50), worlds.of_pods("1")]}, fallback="static=5")
    found = explain(state, KEY, NOW)
    assert found.proposal == 5
    assert [one.rule for one in found.what_ifs] == ["stabilization", "policies"]


def test_the_last_good_proposal_is_one_of_metrics():
    """The proposal of a fallback is no good proposal; that of metrics is one."""
    state = state_of(200, fallback="last-good")
    absorb(state, decide(state, NOW), [ScaleOutcome(*KEY, NOW)])
    assert state.options[KEY].last_good == 4
    state.apply(Delta(answers=[worlds.answer({})]))
    absorb(state, decide(state, after(NOW, seconds(15))), [])
    assert state.options[KEY].last_good == 4


def test_changes_and_reversals_of_an_hour():
    """Only the last hour counts, and a reversal is a change against the one before it."""
    changes = [Change(NOW - minutes(ago), by) for ago, by in ((70, 3), (50, 2), (40, -1), (30, -1), (5, 4))]
    assert flap_report(changes, NOW) == (4, 2)
    state = state_of(200, memory=OptionMemory(changes=tuple(changes)), flap_report="true")
    text = "changes in the last hour: 4, of these against the one before: 2"
    assert text in explain(state, KEY, NOW).lines()
    absorb(state, decide(state, NOW), [ScaleOutcome(*KEY, NOW)])
    assert [change.change for change in state.options[KEY].changes] == [2, -1, -1, 4, 2]


class Broken:
    """An option of another package, with a bug."""

    def read(self, text):
        return {"2.5": 2.5}[text]

    def adjust(self, value, situation):
        return value * situation.desired if situation.desired == 4 else 1 // 0


@pytest.mark.parametrize(
    ("text", "milli", "reason", "problem"),
    [
        ("what", 200, "InvalidAnnotation", "KeyError('what')"),
        ("2.5", 200, "OptionFailed", "TypeError(\"'float' object cannot be interpreted as an integer\")"),
        ("2.5", 150, "OptionFailed", "ZeroDivisionError("),
    ],
)
def test_an_option_with_a_bug_harms_no_hpa(text, milli, reason, problem):
    """Whatever another package's code does, its HPA and those beside it are scaled, and an event says what it did."""
    names = ("web", "good")
    views = [worlds.hpa(name) for name in names]
    views[0] = msgspec.structs.replace(views[0], annotations={PREFIX + "Broken": text})
    state = worlds.state_of(
        hpas=views,
        pods=[worlds.pod(f"{name}-{at}", app=name) for name in names for at in range(2)],
        scales=[worlds.scale(name, replicas=2) for name in names],
        usage={("default", f"{name}-{at}"): milli for name in names for at in range(2)},
        settings=Settings(options=(f"{__name__}:Broken",)),
    )
    good, web = decide(state, NOW).verdicts
    assert good.desired == web.desired == milli // 50
    [event] = web.events
    assert event.reason == reason
    assert problem in event.message
    assert good.events == ()


def test_a_dump_has_the_memory_of_options():
    """A full record decides the same as the state it was made of."""
    state = state_of(200, sync_period="1m", fallback="last-good", flap_report="true")
    absorb(state, decide(state, NOW), [ScaleOutcome(*KEY, NOW)])
    core = HorizontalCore()
    core.apply(encode_delta(state.dump()), full=True)
    assert core.state.options == state.options
    assert core.state.options[KEY] == OptionMemory(NOW, 4, (Change(NOW, 2),))
    assert core.state.specs[KEY].options == state.specs[KEY].options


def test_the_whole_way_with_a_deployment_that_rolls_out():
    """Owners come from the ReplicaSets of the Deployment, the newest is starting, and idle pods are marked."""

    async def story(world):
        world.usage.milli = 10
        extra = {"metadata": {"annotations": {
            PREFIX + "count-only-owned": "true",
            PREFIX + "count-old-during-rollout": "true",
            PREFIX + "idlest-first": "true",
            PREFIX + "fallback": "current",
        }}}  # fmt: skip
        await world.add(replicas=3, extra=extra)
        deployment = await world.cluster.get(DEPLOYMENTS, "web", namespace="default")
        for revision in (1, 2):
            body = builders.replica_set(f"web-{revision}", replicas=3)
            body["metadata"]["annotations"] = {"deployment.kubernetes.io/revision": str(revision)}
            body["metadata"]["ownerReferences"] = [
                {
                    "apiVersion": "apps/v1",
                    "kind": "Deployment",
                    "name": "web",
                    "uid": deployment.metadata.uid,
                    "controller": True,
                }
            ]
            await world.cluster.create(REPLICA_SETS, body, namespace="default")
            status = {"status": {"replicas": 3}}
            await world.cluster.patch(
                REPLICA_SETS, f"web-{revision}", status, namespace="default", subresource="status"
            )
        async with world.running():
            await world.clock.sleep(seconds(16))
            scale = world.controller.state.scales[KEY]
            assert scale.owners == ("ReplicaSet/web-1", "ReplicaSet/web-2")
            assert scale.starting == ("ReplicaSet/web-2",)
            # Nobody owns the pods, so none counts, and the fallback holds the number.
            active = (await world.hpa()).status.conditions[1]
            assert active.reason == "FallbackInUse"
            assert await world.replicas() == 3
            removed = {"metadata": {"annotations": {
                PREFIX + "count-only-owned": None, PREFIX + "count-old-during-rollout": None,
            }}}  # fmt: skip
            await world.cluster.patch(HPAS, "web", removed, namespace="default")
            await world.clock.sleep(minutes(6))
            assert await world.replicas() == 1
            pods = (await world.cluster.list(PODS, namespace="default")).items
            costs = {pod.metadata.name: (pod.metadata.annotations or {}).get(DELETION_COST) for pod in pods}
            assert costs == {"web-0": "-2", "web-1": "-1", "web-2": None}

    play(story)


def test_records_with_options_are_decided_again_to_the_same_bytes():
    """The record has annotations, their memory and fallbacks; an HPA that is not due adds nothing."""

    async def story(world):
        annotations = {"sync-period": "30s", "fallback": "last-good", "flap-report": "true", "pause": "in"}
        extra = {"metadata": {"annotations": {PREFIX + name: text for name, text in annotations.items()}}}
        await world.add(extra=extra)
        async with world.running():
            for milli in (100, 180, 0, 0, 40, 40, 150, 150):
                world.usage.error = "" if milli else "it is down"
                world.usage.milli = milli
                await world.clock.sleep(seconds(15))
            await world.clock.sleep(seconds(1))
            assert await world.replicas() > 2
        return world.recorder.lines

    lines = play(story)
    core = HorizontalCore()
    said = []
    for line in lines:
        record = msgspec.json.decode(line)
        core.apply(msgspec.json.encode(record["state"]), full=record.get("full", False))
        assert core.decide(record["now"]) == msgspec.json.encode(record["commands"])
        result = core.absorb(msgspec.json.encode(record["outcomes"]), record["now"])
        assert result == msgspec.json.encode(record["result"])
        said.append((record.get("full", False), [reason["code"] for reason in record.get("reasons", ())]))
    assert all(full for full, codes in said if "NotDue" in codes)
    assert any("NotDue" in codes for _, codes in said)


def test_its_figures_stay_while_it_waits():
    """The history of an HPA with a long sync period has no gaps: what it decided last, and what was measured then."""

    async def story(world):
        extra = {"metadata": {"annotations": {PREFIX + "sync-period": "3m"}}}
        await world.add(extra=extra)
        async with world.running():
            await world.clock.sleep(minutes(5))
        return [msgspec.json.decode(line)["figures"] for line in world.recorder.lines]

    found = play(story)
    replicas = [table["columns"] for tables in found for table in tables if table["kind"] == "hpa"]
    assert len(replicas) == len(found)
    assert all(columns["desired"] == [2] for columns in replicas)
    metrics = [table["columns"] for tables in found for table in tables if table["kind"] == "metric"]
    assert len(metrics) == 6
    assert all(columns["value"] == [50] for columns in metrics)

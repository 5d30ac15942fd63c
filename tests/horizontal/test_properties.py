"""Properties for any input, over any sequence of ticks: bounds, policies, windows, and independence of order."""

from __future__ import annotations

import math

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.horizontal import worlds
from tests.horizontal.test_columns import GROUPS, KEYS, is_reported, states

from kubetide.horizontal.decide import absorb, decide
from kubetide.horizontal.decision import ScaleOutcome
from kubetide.horizontal.facts.specs import read_spec
from kubetide.horizontal.state import Delta, State
from kubetide.units.time import Instant, seconds

STORIES = st.lists(
    st.tuples(st.sampled_from([15, 15, 40, 61, 301]), st.integers(0, 2_000), st.integers(0, 40_000)),
    min_size=1,
    max_size=8,
)


def play(state, story, columns_from=0):
    """Play ticks (seconds after the one before, CPU of each pod, value of all else); return each with its time."""
    now = worlds.NOW
    for gap, milli, value in story:
        now = Instant(now + seconds(gap))
        usage = dict.fromkeys(state.table.rows, milli)
        replies = [
            msgspec.structs.replace(reply, milli=reply.milli * 0 + value) for reply in state.values.values()
        ]
        state.apply(Delta(answers=[worlds.answer(usage, KEYS)], values=replies))
        commands = decide(state, now, columns_from=columns_from)
        yield now, commands
        absorb(state, commands, [ScaleOutcome(w.namespace, w.name, now) for w in commands.writes])
        state.apply(
            Delta(
                scales=[
                    msgspec.structs.replace(state.scales[w.namespace, w.name], spec_replicas=w.replicas)
                    for w in commands.writes
                ],
                answers=[worlds.answer(usage, KEYS)],
                values=replies,
            )
        )


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(states(), STORIES)
def test_bounds_policies_and_windows_hold(state, story):
    """No tick leaves the bounds, goes further than policies permit, or against what is remembered."""
    # Memory from before is not in the history that is recorded here.
    state = State.from_full(
        msgspec.structs.replace(state.dump(), memory=(), answers=(), values=tuple(state.values.values()))
    )
    history = {key: [] for key in state.hpas}
    proposals = {key: [] for key in state.hpas}
    for now, commands in play(state, story):
        for verdict in commands.verdicts:
            spec = state.specs[verdict.key]
            if not proposals[verdict.key]:
                proposals[verdict.key].append((now, verdict.current))
            if verdict.stage != "decided":
                assert not verdict.rescale
                continue
            if verdict.current == 0:
                assert not verdict.rescale
                continue
            assert spec.minimum <= verdict.desired <= spec.maximum
            if verdict.raw is None:
                assert not spec.minimum <= verdict.current <= spec.maximum
                record(history[verdict.key], now, verdict)
                continue
            within_windows(state, spec, verdict, proposals[verdict.key], now)
            within_policies(spec, verdict, history[verdict.key], now)
            proposals[verdict.key].append((now, verdict.raw))
            record(history[verdict.key], now, verdict)


def record(history, now, verdict):
    if verdict.rescale:
        history.append((now, verdict.desired - verdict.current))


def within_windows(state, spec, verdict, proposals, now):
    """A change never goes beyond the most careful proposal of its window."""
    if verdict.desired < verdict.current:
        if spec.down is None:
            length = state.settings.downscale_stabilization
            seen = [proposed for at, proposed in proposals if at >= now - length]
        else:
            seen = [proposed for at, proposed in proposals if at > now - spec.down.window]
        assert all(verdict.desired >= min(proposed, verdict.current) for proposed in [verdict.raw, *seen])
    if verdict.desired > verdict.current and spec.up is not None:
        seen = [proposed for at, proposed in proposals if at > now - spec.up.window]
        assert all(verdict.desired <= max(proposed, verdict.current) for proposed in [verdict.raw, *seen])


def within_policies(spec, verdict, history, now):
    """Counted from the replicas at the beginning of each policy's period."""
    current, desired = verdict.current, verdict.desired
    if desired == current:
        return
    if spec.up is None:
        assert desired < current or desired <= max(2 * current, 4)
        return
    rules = spec.up if desired > current else spec.down
    assert rules.select != "Disabled"
    far = []
    for policy in rules.policies:
        start = current - sum(change for at, change in history if at > now - policy.period)
        if desired > current:
            most = math.ceil(start * (1 + policy.value / 100)) if policy.percent else start + policy.value
            far.append(desired <= max(most, current))
        else:
            least = int(start * (1 - policy.value / 100)) if policy.percent else start - policy.value
            far.append(desired >= min(least, current))
    assert any(far) if rules.select == "Max" else all(far)


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(states(), STORIES, st.randoms(use_true_random=False))
def test_the_order_of_pods_plays_no_part(state, story, random):
    """Pods and samples in another order, and so in other rows, change no verdict."""
    full = state.dump()
    pods = list(full.pods)
    random.shuffle(pods)
    values = tuple(state.values.values())
    plain = State.from_full(msgspec.structs.replace(full, values=values, answers=()))
    other = State.from_full(msgspec.structs.replace(full, values=values, answers=(), pods=pods))
    for (_, one), (_, two) in zip(play(plain, story), play(other, story), strict=True):
        assert is_reported(one) == is_reported(two)


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(states(), STORIES, st.permutations([0, 1, 2]))
def test_the_order_of_metrics_plays_no_part(state, story, order):
    """Metrics in another order give the same number."""
    full = state.dump()
    values = tuple(state.values.values())

    def with_other_order(view):
        metrics = view.spec.metrics
        chosen = tuple(metrics[at] for at in order if at < len(metrics))
        return msgspec.structs.replace(view, spec=msgspec.structs.replace(view.spec, metrics=chosen))

    plain = State.from_full(msgspec.structs.replace(full, values=values, answers=()))
    hpas = [with_other_order(view) for view in full.hpas]
    assert [read_spec(view, state.settings).key for view in hpas] == sorted(GROUPS)
    other = State.from_full(msgspec.structs.replace(full, values=values, answers=(), hpas=hpas))
    for (_, one), (_, two) in zip(play(plain, story), play(other, story), strict=True):
        assert [numbers_of(verdict) for verdict in one.verdicts] == [numbers_of(v) for v in two.verdicts]


def numbers_of(verdict):
    known = verdict.stage, verdict.current, verdict.desired, verdict.raw, verdict.stabilized, verdict.limit
    shown = sorted(map(repr, verdict.metrics or ()))
    return known, shown

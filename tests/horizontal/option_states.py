"""States with one HPA that has options."""

from __future__ import annotations

import msgspec
from tests.horizontal import worlds

from kubetide.horizontal.decide import absorb, decide
from kubetide.horizontal.memory import MemoryEntry, Recommendation
from kubetide.horizontal.options.annotations import PREFIX
from kubetide.horizontal.reasons import reasons_of
from kubetide.horizontal.rules.evaluate import evaluate
from kubetide.units.time import Instant, minutes

KEY, NOW = ("default", "web"), worlds.NOW
OLD = [Recommendation(Instant(NOW - minutes(1)), 1)]


def state_of(milli=100, *, usage=None, pods=2, memory=None, scale=None, spec=None, owners=None, **options):
    """Pods p0, p1 ... that each use that much of 200m with a target of 50 %, and the options by name."""
    names = [f"p{index}" for index in range(pods)]
    annotations = {PREFIX + name.replace("_", "-"): text for name, text in options.items()}
    view = msgspec.structs.replace(worlds.hpa(**(spec or {})), annotations=annotations)
    used = dict.fromkeys(names, milli) if usage is None else usage
    return worlds.state_of(
        hpas=[view],
        pods=[worlds.pod(name, owner=(owners or {}).get(name, "")) for name in names],
        scales=[scale or worlds.scale(replicas=pods)],
        usage={("default", name): value for name, value in used.items()},
        memory=[MemoryEntry(*KEY, OLD, options=memory)],
    )


def desired(state, now=NOW):
    return evaluate(state, KEY, now).desired


def codes(state):
    result = absorb(state, decide(state, NOW), [])
    return [reason.code for reason in reasons_of(result.settlements[0], state.specs[KEY])]

"""How many replicas each HPA's target should have.

One tick over all HPAs, as upstream does it for one (horizontal controller v1.36):

1. Without a readable scale nothing is decided, and the HPA says so.
2. A target at 0 replicas is left alone; one outside its bounds goes to the bound at once.
3. Else each metric makes a proposal from what is known of it (``known``, ``tally``, ``metrics``,
   ``proposal``, ``shares``), and the largest wins. Where metrics fail, the others may scale up but
   not down.
4. Recent recommendations hold the winner back (``stabilization``).
5. Policies, and the bounds, limit how far one tick goes (``limits``).
6. Nothing is scaled down on a cache of pods that is old or has lost many (``State.holds``; not upstream's).

What an HPA's annotations ask for beyond that stands in ``options``; without any, all is upstream's.

``absorb`` then turns the outcome of the writes into statuses, events and memory.
"""

from __future__ import annotations

from kubetide.horizontal.batch.decide_all import evaluate_all
from kubetide.horizontal.decision import Commands, ScaleWrite, Verdict
from kubetide.horizontal.rules.evaluate import evaluate
from kubetide.horizontal.rules.unchanged import evaluate_unless_unchanged
from kubetide.horizontal.state import State
from kubetide.horizontal.status.absorb import absorb, absorbing
from kubetide.objects.meta import Key
from kubetide.units.steps import Steps, finish
from kubetide.units.time import Instant

__all__ = ["absorb", "absorbing", "decide", "decide_one", "deciding"]

# Below so many pods, walking over them costs less than a pass in columns.
COLUMNS_FROM = 200


def decide(state: State, now: Instant, *, columns_from: int = COLUMNS_FROM) -> Commands:
    """Run ``deciding`` to its end and return its result."""
    return finish(deciding(state, now, columns_from=columns_from))


def decide_one(state: State, key: Key, now: Instant) -> Commands:
    """Return the verdict and write of ``decide`` for one HPA, without evaluating the others."""
    verdict = evaluate(state, key, now)
    return Commands(now, (_write(state, verdict),) if verdict.rescale else (), (verdict,))


def deciding(state: State, now: Instant, *, columns_from: int = COLUMNS_FROM) -> Steps[Commands]:
    """Return the scale writes, and the verdict on every HPA, in order of namespace and name.

    Args:
        columns_from: From how many pods on the ordinary HPAs are decided about all at once; the
            verdicts are the same either way.
    """
    if len(state.table.rows) >= columns_from and state.hpas and state.early is None:
        verdicts = yield from evaluate_all(state, now)
    else:
        verdicts = tuple([evaluate_unless_unchanged(state, key, now) for key in state.hpas])
    return Commands(now, tuple(_write(state, verdict) for verdict in verdicts if verdict.rescale), verdicts)


def _write(state: State, verdict: Verdict) -> ScaleWrite:
    spec, scale = state.specs[verdict.key], state.scales[verdict.key]
    namespace, name = verdict.key
    return ScaleWrite(
        namespace=namespace,
        name=name,
        api_version=spec.api_version,
        kind=spec.kind,
        target=spec.target,
        replicas=verdict.desired,
        resource_version=scale.resource_version,
        costs=verdict.costs,
    )

"""The horizontal loop's entry for explanations from records."""

from __future__ import annotations

from typing import Final

import msgspec

from kubetide.horizontal.core import HorizontalCore
from kubetide.horizontal.decision import ScaleOutcome
from kubetide.horizontal.explain.answers import explain
from kubetide.horizontal.explain.one_hpa import OneHpaCore
from kubetide.horizontal.explain.targets_only import TargetsCore
from kubetide.horizontal.options.forecasting import score_lines
from kubetide.horizontal.reasons import VOCABULARY
from kubetide.loop import Explainer, Explaining
from kubetide.units.time import Instant

_outcomes: Final = msgspec.json.Decoder(tuple[ScaleOutcome, ...])


def _lines(core: HorizontalCore, subject: str, now: Instant, view: str) -> list[str]:
    del view
    namespace, _, name = subject.partition("/")
    key = namespace, name
    if why := core.state.left_alone.get(key):
        return [
            f"It is left alone: {why}.",
            f"ask: kubetide handover {subject} --probe (whether another controller answers)",
        ]
    return [*explain(core.state, key, now).lines()[1:], *score_lines(core.state, key, now)]


def _names(core: HorizontalCore) -> list[str]:
    state = core.state
    return ["/".join(key) for key in (*state.specs, *state.left_alone)]


def _targets(core: HorizontalCore) -> dict[str, str]:
    return {"/".join(key): f"{one.kind}/{key[0]}/{one.target}" for key, one in core.state.specs.items()}


def _why_not_changed(outcomes: bytes, subject: str) -> str:
    found = _outcomes.decode(outcomes) if outcomes.startswith(b"[") else ()
    one = next((one for one in found if f"{one.namespace}/{one.name}" == subject), None)
    if one is not None and one.withheld:
        return (
            "It is not written: this run advises, or another controller serves the HPA (`kubetide handover`)."
        )
    if one is not None and one.pending:
        return f"It is not known to be written: {one.pending}."
    return f"That failed: {one.error}." if one is not None and one.error else ""


def _alone(subject: str) -> OneHpaCore:
    namespace, _, name = subject.partition("/")
    return OneHpaCore((namespace, name))


EXPLAINING: Final = Explaining(
    "horizontal",
    HorizontalCore,
    VOCABULARY,
    (
        Explainer(
            "hpa",
            _lines,
            _names,
            namespaced=True,
            after_decision=False,
            targets=_targets,
            alone=_alone,
            targets_alone=TargetsCore,
            why_not_changed=_why_not_changed,
        ),
    ),
)

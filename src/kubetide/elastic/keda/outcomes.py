"""What became of the writes: events in KEDA's words, and reasons. Source: KEDA 2.21, pkg/scaling/executor."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from kubetide.elastic.decide import Notice
from kubetide.elastic.keda.commands import Commands, Outcome, Result, Write
from kubetide.elastic.keda.reasons import VOCABULARY
from kubetide.elastic.keda.sources import Source
from kubetide.elastic.keda.state import State
from kubetide.explain.reasons import Reason
from kubetide.units.time import Instant, after


def absorb(state: State, commands: Commands, outcomes: Sequence[Outcome], now: Instant) -> Result:
    """Apply the outcomes of the writes; return the events and reasons."""
    for one in commands.memory:
        state.memory[one.key] = one
    notices, reasons = [], []
    for write, outcome in zip(commands.writes, outcomes, strict=True):
        source = state.sources[write.key]
        if outcome.error or outcome.pending:
            state.memory[write.key] = replace(state.memory[write.key], due=after(now, source.polling))
        notices += _notices(source, write, outcome)
        reasons.append(_reason(source, write, outcome))
    return Result(tuple(notices), tuple(reasons))


def _reason(source: Source, write: Write, outcome: Outcome) -> Reason:
    subject = "/".join(write.key)
    if outcome.error:
        return VOCABULARY.reason("Failed", subject, error=outcome.error)
    if outcome.pending:
        return VOCABULARY.reason("Pending", subject, why=outcome.pending)
    if outcome.withheld:
        code = "Advised"
    elif source.paused:
        code = "PausedAt"
    else:
        code = "Activated" if write.replicas > write.current else "Deactivated"
    return VOCABULARY.reason(code, subject, current=write.current, size=write.replicas)


def _notices(source: Source, write: Write, outcome: Outcome) -> list[Notice]:
    if outcome.withheld or outcome.pending:
        return []
    named = f"{source.target.api_version}.{source.target.kind} {source.namespace}/{source.target.name}"
    sizes = f"{named} from {write.current} to {write.replicas}"
    up = write.replicas > write.current
    if outcome.error:
        reason = "KEDAScaleTargetActivationFailed" if up else "KEDAScaleTargetDeactivationFailed"
        return [Notice(write.key, "Warning", reason, f"Failed to scale {named}: {outcome.error}")]
    if source.paused:
        return []
    if not up:
        return [Notice(write.key, "Normal", "KEDAScaleTargetDeactivated", f"Deactivated {sizes}")]
    why = f"triggered by {';'.join(write.by)}"
    if source.forced:
        why = "caused by forced activation annotation"
    return [Notice(write.key, "Normal", "KEDAScaleTargetActivated", f"Scaled {sizes}, {why}")]

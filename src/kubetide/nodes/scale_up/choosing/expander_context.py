"""Input of expanders besides their options, and their warnings."""

from __future__ import annotations

from kubetide.explain.reasons import Reason
from kubetide.nodes.decision import EventRecord
from kubetide.nodes.expander import Context
from kubetide.nodes.expander.priority import PRIORITY
from kubetide.nodes.facts.priorities import PRIORITY_MAP
from kubetide.nodes.reasons import reason
from kubetide.nodes.state import State


def expander_context(state: State) -> Context:
    """Return the facts that expanders may use besides their options."""
    settings = state.settings
    return Context(len(state.nodes), settings.gpu_label, settings.pod_prices, state.priority_map)


def problems_of(state: State, context: Context) -> tuple[Reason, ...]:
    """Return why expanders that were asked left all options, as reasons for the group that is chosen."""
    absent = f"ConfigMap {state.settings.namespace}/{PRIORITY_MAP} is not there, or may not be read"
    return tuple(
        reason("PrioritiesIgnored", why=one.why or absent)
        if one.expander == PRIORITY
        else reason("ExpanderFailed", expander=one.expander, why=one.why)
        for one in context.failed
    )


def priority_warnings(state: State, context: Context) -> list[EventRecord]:
    """Return the problems that the expander ``priority`` found, as events on its ConfigMap."""
    return [
        EventRecord(
            kind="ConfigMap",
            namespace=state.settings.namespace,
            name=PRIORITY_MAP,
            uid=state.priority_map.uid,
            type="Warning",
            reason=one.reason,
            message=one.message,
        )
        for one in context.warned
    ]

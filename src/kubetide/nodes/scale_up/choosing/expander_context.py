"""What expanders get besides their options, and what they report."""

from __future__ import annotations

from kubetide.nodes.decision import EventRecord
from kubetide.nodes.expander import Context
from kubetide.nodes.facts.priorities import PRIORITY_MAP
from kubetide.nodes.state import State


def expander_context(state: State) -> Context:
    """Return what expanders may know besides their options."""
    settings = state.settings
    return Context(len(state.nodes), settings.gpu_label, settings.pod_prices, state.priority_map)


def priority_warnings(state: State, context: Context) -> list[EventRecord]:
    """Return what the expander ``priority`` found wrong, as events on its ConfigMap."""
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

"""Input of expanders besides their options, and their warnings."""

from __future__ import annotations

from kubetide.nodes.decision import EventRecord
from kubetide.nodes.expander import Context, reads_priorities
from kubetide.nodes.expander.priority import LEAVING_ALL
from kubetide.nodes.facts.priorities import PRIORITY_MAP
from kubetide.nodes.state import State


def expander_context(state: State) -> Context:
    """Return the facts that expanders may use besides their options."""
    settings = state.settings
    return Context(len(state.nodes), settings.gpu_label, settings.pod_prices, state.priority_map)


def why_priorities_ignored(state: State, context: Context) -> str:
    """Return why the expander ``priority`` left all options; empty where it chose, or was not asked."""
    if not reads_priorities(state.settings.expander):
        return ""
    if not context.priority_map.found:
        return f"ConfigMap {state.settings.namespace}/{PRIORITY_MAP} is not there, or may not be read"
    return next((one.message for one in context.warned if one.reason in LEAVING_ALL), "")


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

"""The answer of ``kubetide explain scaledobject``."""

from __future__ import annotations

from kubetide.elastic.keda.decide import problems_of
from kubetide.elastic.keda.state import State
from kubetide.explain.algorithm import StepCore
from kubetide.units.time import Instant, after, format_rfc3339


def names(core: StepCore[State]) -> list[str]:
    """Return the names of all ScaledObjects."""
    return ["/".join(key) for key in sorted(core.state.sources)]


def lines(core: StepCore[State], subject: str, now: Instant, view: str) -> list[str]:
    """Return whether there is work, the next action and its time. Raises KeyError for an unknown object."""
    del view
    namespace, _, name = subject.partition("/")
    state, key = core.state, (namespace, name)
    source, memory = state.sources[key], state.memory[key]
    target = f"{source.target.kind} {source.target.name}"
    found = [f"it scales {target} from {source.lowest} to {source.most} replicas"]
    found += [f"warning: {text}" for text in problems_of(state, key, state.answers.get(key)) or memory.warned]
    if source.paused:
        return [*found, "it is paused"]
    if memory.last_active is None:
        found.append("there has been no work yet")
    else:
        found.append(f"there was work at {format_rfc3339(memory.last_active)}")
        over = after(memory.last_active, source.cooldown)
        if source.lowest == 0 and over > now:
            found.append(f"its target is stopped at {format_rfc3339(over)} where none comes before")
    return [*found, f"how many replicas: kubetide explain hpa {source.hpa} -n {namespace}"]

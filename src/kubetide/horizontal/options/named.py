"""Options of other packages: entry points of the group ``kubetide.hpa-options``, used when an annotation names them.

An option NAME is turned on for an HPA by the annotation ``horizontal.kubetide.io/NAME``. It is asked last, after
bounds, policies, forecasts and the built-in options, and may change the number within the HPA's bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from operator import index
from typing import Any, Final, NamedTuple, Protocol

from kubetide.ports.plugins import Plugin, PluginGroup, PluginNotUsable
from kubetide.units.time import Instant


class Situation(NamedTuple):
    """The facts that an option may use.

    Attributes:
        key: Namespace and name of the HPA.
        current: ``spec.replicas`` of its target.
        desired: What is desired so far.
        minimum, maximum: Its bounds.
        now: The time of the tick.
    """

    key: tuple[str, str]
    current: int
    desired: int
    minimum: int
    maximum: int
    now: Instant


class Option(Protocol):
    """An option of an HPA. The same situation must give the same answer."""

    def read(self, text: str) -> Any:
        """Return the value of the annotation. Raises ValueError with what to write instead."""
        ...

    def adjust(self, value: Any, situation: Situation) -> int:
        """Return the desired replicas; ``situation.desired`` to change nothing."""
        ...


class Named(NamedTuple):
    """An option that an HPA turned on, and the value of its annotation."""

    name: str
    value: Any


PLUGINS: Final = PluginGroup[Option](
    name="kubetide.hpa-options",
    setting="--horizontal-pod-autoscaler-options",
    noun="option",
    must="have `read(text)` and `adjust(value, situation)`",
    fits=lambda offered: all(callable(getattr(offered, method, None)) for method in ("read", "adjust")),
    of_class=True,
)


@cache
def named_options(names: tuple[str, ...]) -> dict[str, tuple[Plugin, Option]]:
    """Return the options by the names of their annotations. Raises PluginNotUsable."""
    found: dict[str, tuple[Plugin, Option]] = {}
    for name in names:
        short = name.rpartition(":")[2] if ":" in name else name
        if short in found:
            raise PluginNotUsable(f"{PLUGINS.setting}: two options are called {short!r}; name one of them")
        found[short] = PLUGINS.load(name)
    return found


class Adjustments(NamedTuple):
    """The options that changed the number, with the number after each, and what is wrong with the others."""

    changes: tuple[tuple[str, int], ...]
    problems: tuple[str, ...]


def adjusted(
    options: Sequence[Named], installed: dict[str, tuple[Plugin, Option]], situation: Situation
) -> Adjustments:
    """Return the result of each option that changes the number, within the bounds, in order."""
    changes: list[tuple[str, int]] = []
    problems: list[str] = []
    for name, value in options:
        _, option = installed[name]
        try:
            proposed = index(option.adjust(value, situation))
        # Another package's code; whatever it does, the HPA goes on without it, and so do all others.
        except Exception as error:  # noqa: BLE001
            problems.append(f"horizontal.kubetide.io/{name}: the option is not used: {error!r}")
            continue
        number = max(min(proposed, situation.maximum), situation.minimum)
        if number != situation.desired:
            changes.append((name, number))
            situation = situation._replace(desired=number)
    return Adjustments(tuple(changes), tuple(problems))

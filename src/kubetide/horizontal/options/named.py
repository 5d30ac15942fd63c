"""Options of other packages: entry points of the group ``kubetide.hpa-options``, used when they are named.

An option NAME is turned on for an HPA by the annotation ``horizontal.kubetide.io/NAME``. It is asked last, after
bounds, policies, forecasts and the built-in options, and may change the number within the HPA's bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, Final, NamedTuple, Protocol

from kubetide.ports.plugins import Plugin, PluginNotUsable, load_plugin
from kubetide.units.time import Instant

GROUP: Final = "kubetide.hpa-options"
SETTING: Final = "--horizontal-pod-autoscaler-options"


class Situation(NamedTuple):
    """What an option may look at.

    Attributes:
        key: Namespace and name of the HPA.
        current: ``spec.replicas`` of its target.
        desired: What is wanted so far.
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
        """Return the number of replicas to go for; ``situation.desired`` where the option has nothing to say."""
        ...


class Named(NamedTuple):
    """An option that an HPA has turned on, and the value of its annotation."""

    name: str
    value: Any


@cache
def named_options(names: tuple[str, ...]) -> dict[str, tuple[Plugin, Option]]:
    """Return the options by the names of their annotations. Raises PluginNotUsable."""
    found: dict[str, tuple[Plugin, Option]] = {}
    for name in names:
        plugin, offered = load_plugin(GROUP, name, SETTING)
        try:
            option = offered() if isinstance(offered, type) else offered
        except TypeError as error:
            raise PluginNotUsable(f"{SETTING}: {name!r} cannot be loaded: {error}") from error
        if not all(callable(getattr(option, method, None)) for method in ("read", "adjust")):
            raise PluginNotUsable(
                f"{SETTING}: {name!r} is no option: it needs `read(text)` and `adjust(value, situation)`"
            )
        short = name.rpartition(":")[2] if ":" in name else name
        if short in found:
            raise PluginNotUsable(f"{SETTING}: two options are called {short!r}; name one of them")
        found[short] = plugin, option
    return found


def adjusted(
    options: Sequence[Named], installed: dict[str, tuple[Plugin, Option]], situation: Situation
) -> list[tuple[str, int]]:
    """Return what each option that changes the number makes of it, held within the bounds, in order."""
    changes: list[tuple[str, int]] = []
    for name, value in options:
        _, option = installed[name]
        wanted = option.adjust(value, situation)
        number = max(min(wanted, situation.maximum), situation.minimum)
        if number != situation.desired:
            changes.append((name, number))
            situation = situation._replace(desired=number)
    return changes

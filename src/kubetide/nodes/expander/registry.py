"""The expanders by the names of ``--expander``, and chains of them.

A new expander is one file here and one line in ``EXPANDERS``, or a plug-in of another package (``named``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kubetide.nodes.expander.base import Context, Expander, Option
from kubetide.nodes.expander.least_cost.filter import LEAST_COST, least_cost
from kubetide.nodes.expander.least_nodes import least_nodes
from kubetide.nodes.expander.least_waste import least_waste
from kubetide.nodes.expander.most_pods import most_pods
from kubetide.nodes.expander.named import named_expander, options_left_by_plugin
from kubetide.nodes.expander.price import PRICE, price
from kubetide.nodes.expander.priority import PRIORITY, priority
from kubetide.ports.plugins import Plugin, PluginNotUsable
from kubetide.units.seeds import Draw, unit_interval
from kubetide.units.time import Instant

RANDOM = "random"
GRPC = "grpc"
"""The expander in a process of its own: it is asked between two steps of a tick, not from here."""

_ONLY_ONE = "being the only one"

EXPANDERS: dict[str, Expander] = {
    "least-waste": least_waste,
    "most-pods": most_pods,
    "least-nodes": least_nodes,
    PRICE: price,
    PRIORITY: priority,
    LEAST_COST: least_cost,
}


class ExpanderError(ValueError):
    """The value of ``--expander`` is invalid."""


def parse_expanders(text: str) -> tuple[str, ...]:
    """Return the names in ``a,b,c``. Raises ExpanderError.

    Raises: ExpanderError for an unknown name, a name twice, anything after ``random``, and for
        ``least-cost`` in the first place without HiGHS.
    """
    names = tuple(text.split(","))
    for at, name in enumerate(names):
        if name not in {RANDOM, GRPC}:
            try:
                expander_of(name)
            except PluginNotUsable as error:
                known = ", ".join((*EXPANDERS, GRPC, RANDOM))
                why = str(error).removeprefix(f"--expander: there is no {name!r}; ")
                raise ExpanderError(
                    f"--expander={text}: Expander {name} not supported; there are {known}; {why}"
                ) from error
        if name in names[:at]:
            raise ExpanderError(
                f"--expander={text}: Expander {name} was specified multiple times, "
                "each expander must not be specified more than once"
            )
        if RANDOM in names[:at]:
            raise ExpanderError(
                f"--expander={text}: Expander {name} came after an expander {RANDOM} that will always return only one result, "
                f"this is not allowed since {name} will never be used"
            )
    if names[0] == LEAST_COST and not _has_solver():
        raise ExpanderError(
            f"--expander={text}: {LEAST_COST} plans with HiGHS, which is not installed; "
            "pip install 'highspy>=1.12'"
        )
    return names


def expander_of(name: str) -> Expander:
    """Return a built-in expander, or one of another package. Raises PluginNotUsable."""
    return EXPANDERS[name] if name in EXPANDERS else named_expander(name)[1]


def options_left(name: str, options: Sequence[Option], context: Context) -> list[Option]:
    """Return the options that an expander of the chain leaves. Raises PluginNotUsable."""
    if name in EXPANDERS:
        return EXPANDERS[name](options, context)
    return options_left_by_plugin(name, options, context)


def expander_plugins(expander: str) -> list[Plugin]:
    """Return the expanders of a chain that other packages provide. Raises PluginNotUsable."""
    names = expander.split(",")
    return [named_expander(name)[0] for name in names if name not in {RANDOM, GRPC, *EXPANDERS}]


def packs_all_groups(expander: str) -> bool:
    """Return whether the chain plans over all groups at once instead of choosing one group."""
    return expander.split(",", maxsplit=1)[0] == LEAST_COST


def reads_priorities(expander: str) -> bool:
    """Return whether the chain needs the ConfigMap of the ``priority`` expander."""
    return PRIORITY in expander.split(",")


def needs_prices(expander: str) -> bool:
    """Return whether an expander of the chain leaves out groups without a price per hour."""
    return PRICE in expander.split(",")


class Choice(NamedTuple):
    """The result of a chain of expanders.

    Attributes:
        option: The best; None where no option could be rated.
        by: The name of the expander that settled it.
        drawn_among: Groups of the options that one was drawn from; empty when nothing was left to chance.
    """

    option: Option | None
    by: str
    drawn_among: tuple[str, ...] = ()


def asks_service(expander: str) -> bool:
    """Return whether the chain has an external expander."""
    return GRPC in expander.split(",")


def before_service(options: Sequence[Option], expander: str, context: Context) -> tuple[list[Option], str]:
    """Return the options that the expanders before ``grpc`` leave, and which of them settled it; empty if ``grpc`` is asked.

    As upstream it is not where an expander before it leaves at most one.
    """
    left = list(options)
    for name in expander.split(","):
        if name == GRPC:
            break
        left = options_left(name, left, context)
        if len(left) <= 1:
            return left, _settled_by(name, context)
    return left, ""


def choose(
    options: Sequence[Option],
    expander: str,
    *,
    seed: int,
    now: Instant,
    context: Context | None = None,
    draw: Draw = unit_interval,
    settled_by: str = "",
) -> Choice:
    """Return the best option and the expander that decided.

    Each expander of the chain (of what comes after ``grpc``, where that is in it) keeps its best; of several that are left at the end one is drawn, by
    seed and time. As upstream, the chain ends where one is left, also before ``grpc``. Options must be in order of group id; there are none only where an
    expander before ``grpc`` rated none. ``settled_by`` is the expander up to ``grpc`` that left one or none.
    """
    context = context or Context()
    left = list(options)
    names = parse_expanders(expander)
    if GRPC in names and len(left) < 2:
        return Choice(left[0] if left else None, settled_by or _ONLY_ONE)
    for name in names[names.index(GRPC) + 1 :] if GRPC in names else names:
        if name == RANDOM:
            break
        left = options_left(name, left, context)
        if len(left) == 1:
            return Choice(left[0], _settled_by(name, context))
        if not left:
            return Choice(None, name)
    if len(left) == 1:
        return Choice(left[0], _ONLY_ONE)
    drawn = left[int(draw(seed, "expander", now) * len(left))]
    return Choice(drawn, RANDOM, tuple(option.group.id for option in left))


def _settled_by(name: str, context: Context) -> str:
    """Return who settled what an expander left; one that failed chose nothing."""
    return _ONLY_ONE if any(one.expander == name for one in context.failed) else name


def _has_solver() -> bool:
    from kubetide.nodes.expander.least_cost.solver import has_solver  # noqa: PLC0415  answers without it come sooner

    return has_solver()

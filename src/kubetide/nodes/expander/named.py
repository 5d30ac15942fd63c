"""Expanders of other packages: entry points of the group ``kubetide.expanders``, used when a flag names them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Final

from kubetide.nodes.expander.base import Context, Expander, ExpanderFailure, Option
from kubetide.ports.plugins import Plugin, PluginGroup

PLUGINS: Final = PluginGroup[Expander](
    name="kubetide.expanders",
    setting="--expander",
    noun="expander",
    must="be a function of options and a context",
    fits=callable,
)


@cache
def named_expander(name: str) -> tuple[Plugin, Expander]:
    """Return the plug-in: a function of options and a context that returns the best options. Raises PluginNotUsable."""
    return PLUGINS.load(name)


def options_left_by_plugin(name: str, options: Sequence[Option], context: Context) -> list[Option]:
    """Return the options that a plug-in leaves, in order; all of them, with a note in ``context.failed``, where it fails.

    A mistake in one expander must not end the tick, in which nodes go, too.
    """
    _, expander = named_expander(name)
    try:
        returned = list(expander(list(options), context))
    except Exception as error:  # noqa: BLE001  # whatever a plug-in raises
        context.failed.append(ExpanderFailure(name, f"{type(error).__name__}: {error}"))
        return list(options)
    given = {id(option) for option in options}
    if any(id(one) not in given for one in returned):
        context.failed.append(
            ExpanderFailure(name, "it returned what is none of the options that it was given")
        )
        return list(options)
    left = {id(one) for one in returned}
    return [option for option in options if id(option) in left]

"""API requests of a loop as roles: the tables behind ``deploy/`` and behind hints about refusals.

A loop that only advises needs the reads; the rest is granted with ``act``.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple


class Grant(NamedTuple):
    """One rule of a role.

    Attributes:
        resources: Plural names, a subresource after a slash; ``*`` stands for any.
        names: Of the only objects that it holds for; empty for all.
        acting: Whether it is needed only by a run that acts.
        value: The value of the chart that grants it; empty for what every release gets.
    """

    verbs: tuple[str, ...]
    group: str
    resources: tuple[str, ...]
    names: tuple[str, ...] = ()
    acting: bool = False
    value: str = ""

    def allows(self, verb: str, group: str, resource: str) -> bool:
        """Return whether it grants the verb on some object, whatever its name."""
        subresource = resource.partition("/")[2]
        named = {"*", resource, f"*/{subresource}"} if subresource else {"*", resource}
        return verb in self.verbs and self.group in {"*", group} and not named.isdisjoint(self.resources)


class Role(NamedTuple):
    """A role of ``deploy/``, by its name in a release called ``kubetide``."""

    kind: Literal["ClusterRole", "Role"]
    name: str
    grants: tuple[Grant, ...]


CACHED: Final = ("list", "watch")
"""The verbs of a cache."""

EVENTS: Final = Grant(("create", "patch"), "", ("events",), acting=True)
"""What writing events takes."""

"""The roles behind ``deploy/``, and hints about refusals that one of them would fix.

The tests hold the roles of the Helm chart equal to these, and these equal to what the loops ask for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import Final

from kubetide.loop import Grant, Role, loop_entries

LEASES: Final = Role(
    "Role",
    "kubetide-leases",
    (
        Grant(
            ("get", "update"),
            "coordination.k8s.io",
            ("leases",),
            ("cluster-autoscaler", "kubetide", "vpa-recommender-lease", "vpa-updater"),
            acting=True,
        ),
        Grant(("create",), "coordination.k8s.io", ("leases",), acting=True),
        Grant(("create",), "", ("events",), acting=True),
    ),
)


DASHBOARD: Final = Role(
    "ClusterRole",
    "kubetide-ui",
    (
        Grant(("create",), "authentication.k8s.io", ("tokenreviews",), value="ui.enabled"),
        Grant(("create",), "authorization.k8s.io", ("subjectaccessreviews",), value="ui.enabled"),
    ),
)
"""Of the dashboard, which asks the API server who may look."""

BESIDE: Final = (LEASES, DASHBOARD)
"""The roles that are no loop's."""


@cache
def roles() -> tuple[Role, ...]:
    """Return the roles of all loops of this package, of the leases and of the dashboard."""
    return (*(role for entry in loop_entries() for role in entry.roles), *BESIDE)


# The words of kube-apiserver's RBAC authorizer (v1.36).
_REFUSED = re.compile(r'cannot (?P<verb>\S+) resource "(?P<resource>[^"]*)" in API group "(?P<group>[^"]*)"')


def missing_right(message: str) -> str:
    """Return verb and resource of a refusal in the words of the RBAC authorizer; empty for any other error."""
    refused = _REFUSED.search(message)
    if refused is None:
        return ""
    group = f".{refused['group']}" if refused["group"] else ""
    return f"{refused['verb']} {refused['resource']}{group}"


def with_hint(message: str, controllers: Iterable[str]) -> str:
    """Return an error's text; for a refusal that a role of ``deploy/`` would fix, with that role's name.

    Args:
        controllers: The loops that run: the roles of others are not offered.
    """
    refused = _REFUSED.search(message)
    if refused is None:
        return message
    for role in (*(role for entry in loop_entries(controllers) for role in entry.roles), *BESIDE):
        for grant in role.grants:
            if grant.allows(refused["verb"], refused["group"], refused["resource"]):
                where = f" with {grant.value}=true" if grant.value else ""
                return f"{message}; {role.kind} {role.name} of deploy/ grants it{where}"
    return message

"""Where the embedded cluster differs from a recording on purpose, and why: the one place that says so."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple


class Known(NamedTuple):
    """Differences that are allowed.

    Attributes:
        pattern: What matches each of them whole, with the name of its timeline in front.
        reason: Why the embedded cluster does not do as Kubernetes does.
    """

    pattern: str
    reason: str


KNOWN: tuple[Known, ...] = (
    Known(
        r".*: Pod \S+ refused: Unschedulable: 0/\d+ nodes are available: .*untolerated taint\(s\).*: does not come, .*",
        "kube-scheduler tries a refused pod on each new node that the plugin which refused it would accept, though another "
        "plugin refuses that node. The embedded one tries it when a node takes it: else each node that joins would write "
        "the status of every waiting pod again. Only the number of nodes in the message is older.",
    ),
    Known(
        r".*: Node \S+ loses taint node\.kubernetes\.io/not-ready:NoSchedule.*: does not come, .*",
        "The API server gives each new node the taint not-ready, and the node lifecycle controller takes it off one that is "
        "Ready. In the embedded cluster only nodes that join before they are Ready have it, from their cloud.",
    ),
    Known(
        r".*: Node \S+ (gets|loses) taint node\.kubernetes\.io/not-ready:NoExecute: does not come, .*",
        "A node that joins before it is Ready gets the evicting taint as well, a moment later. No pod is on it yet, and every pod "
        "tolerates that taint for 300 s, so it decides nothing.",
    ),
    Known(
        r".*: Node \S+ (gets|loses) taint node\.kubernetes\.io/unschedulable:NoSchedule: does not come, .*",
        "The scheduler and the DaemonSet controller go by spec.unschedulable, with the same outcome; the taint would be one "
        "more write for each cordon.",
    ),
)


def unexplained(name: str, found: Sequence[str]) -> list[str]:
    """Return the differences of a timeline that no entry allows."""
    return [one for one in found if not any(re.fullmatch(known.pattern, f"{name}: {one}") for known in KNOWN)]


def unused(found: Sequence[str]) -> list[str]:
    """Return the patterns that match none of the differences, each with the name of its timeline in front."""
    return [known.pattern for known in KNOWN if not any(re.fullmatch(known.pattern, one) for one in found)]

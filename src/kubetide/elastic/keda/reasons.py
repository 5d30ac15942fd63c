"""The closed vocabulary of reasons for starting and stopping a workload behind a queue."""

from __future__ import annotations

from typing import Final

from kubetide.explain.reasons import Vocabulary

VOCABULARY: Final = Vocabulary(
    {
        "Activated": "{subject}: there is work, so its target goes from {current} to {size} replicas",
        "Deactivated": "{subject}: there was no work for the cooldown period, so its target goes from {current} to {size} replicas",
        "PausedAt": "{subject}: it is paused at {size} replicas, so its target goes from {current} to {size}",
        "Advised": "{subject}: its target would go from {current} to {size} replicas; this run only advises",
        "FellBack": "{subject}: servers failed more often than failureThreshold, so its HPA goes by the fallback",
        "Recovered": "{subject}: servers answer again, so its HPA goes by their values",
        "Failed": "{subject}: the size of its target could not be written: {error}",
        "Pending": "{subject}: the size of its target is not known to be written: {why}",
        "Warned": "{subject}: {why}",
    },
    actions=("Activated", "Deactivated", "PausedAt", "Advised", "Failed", "Pending"),
    fruitless=("Advised", "Failed", "Pending"),
    changes=dict.fromkeys(("Activated", "Deactivated", "PausedAt", "Advised"), ("current", "size")),
)

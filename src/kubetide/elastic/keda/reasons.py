"""The closed vocabulary of reasons for starting and stopping a workload behind a queue."""

from __future__ import annotations

from typing import Final

from kubetide.explain.reasons import Vocabulary

VOCABULARY: Final = Vocabulary(
    {
        "Activated": "{subject}: there is work, so its target goes from {current} to {size} replicas",
        "Deactivated": "{subject}: there was no work for the cooldown period, so its target goes from {current} to {size} replicas",
        "Failed": "{subject}: the size of its target could not be written: {error}",
        "Warned": "{subject}: {why}",
    },
    actions=("Activated", "Deactivated", "Failed"),
    fruitless=("Failed",),
    changes={"Activated": ("current", "size"), "Deactivated": ("current", "size")},
)

"""The closed vocabulary of reasons why an ElasticWorkload is followed or not."""

from __future__ import annotations

from typing import Final

from kubetide.explain.reasons import Vocabulary

VOCABULARY: Final = Vocabulary(
    {
        "Accepted": "{subject}: {why}",
        "NotAccepted": "{subject} is not followed: {why}",
        "ScheduleValid": "{subject}: all rules of the schedule are followed",
        "NotScheduleValid": "{subject}: the schedule has problems: {why}",
    },
    actions=("Accepted", "NotAccepted", "ScheduleValid", "NotScheduleValid"),
    fruitless=("NotAccepted", "NotScheduleValid"),
)

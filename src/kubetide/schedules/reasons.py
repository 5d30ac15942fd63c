"""The closed vocabulary of reasons of the time-table loop."""

from __future__ import annotations

from typing import Final

from kubetide.explain.reasons import Vocabulary

VOCABULARY: Final = Vocabulary(
    {
        "Sized": "{subject}: {rule}, due {due}, sets {target} from {current} to {size:replica}",
        "Bounded": "{subject}: {rule}, due {due}, sets the bounds of {target} to {minimum} and {maximum}",
        "Left": "{subject}: {rule}, due {due}, leaves {target} as it is: {why}",
        "Excluded": "{subject}: {rule}, due {due}, does not begin: the date is left out by {expression}",
        "Superseded": "{subject}: {rule}, due {due}, was missed; a later change holds instead",
        "Refused": "{subject}: {rule} could not change {target}: {error}",
        "Pending": "{subject}: {rule} is not known to have changed {target}: {why}",
        "Warned": "{subject}: {why}",
    },
    actions=("Sized", "Bounded", "Refused", "Pending"),
    fruitless=("Refused", "Pending"),
    changes={"Sized": ("current", "size")},
)

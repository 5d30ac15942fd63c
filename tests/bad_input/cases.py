"""All requests of the battery, in the order in which they are sent."""

from __future__ import annotations

from tests.bad_input.requests import CASES as ORDINARY
from tests.bad_input.resizes import RESIZES

CASES = (*ORDINARY, *RESIZES)

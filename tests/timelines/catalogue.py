"""All timelines."""

from __future__ import annotations

from tests.timelines.disruptions import DISRUPTIONS
from tests.timelines.placement import PLACEMENT
from tests.timelines.timeline import Timeline
from tests.timelines.workloads import WORKLOADS

TIMELINES: dict[str, Timeline] = {one.name: one for one in (*WORKLOADS, *PLACEMENT, *DISRUPTIONS)}

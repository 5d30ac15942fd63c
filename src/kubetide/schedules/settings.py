"""Settings of the time-table loop."""

from __future__ import annotations

import msgspec

from kubetide.units.time import Duration, format_duration, seconds


class Settings(msgspec.Struct, frozen=True):
    """Two flags of ours; upstream's controllers have none.

    Attributes:
        schedules_period: Time between two ticks; a change that is due in between is made when it is due.
        schedules_zone: IANA zone of time tables that name none, as upstream's controllers take the process's.
    """

    schedules_period: Duration = seconds(10)
    schedules_zone: str = "UTC"

    def __post_init__(self) -> None:
        if self.schedules_period <= 0:
            raise ValueError(
                f"schedules-period must be greater than 0, but got {format_duration(self.schedules_period)}"
            )

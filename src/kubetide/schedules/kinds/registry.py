"""The kinds of time tables by name: a new one is a file and a line here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kubetide.schedules.kinds import alibaba, elastic, keda, tencent, tkestack
from kubetide.schedules.kinds.base import Mode

MODES: Final[Mapping[str, Mode]] = {
    mode.kind.kind: mode for mode in (tencent.MODE, alibaba.MODE, tkestack.MODE, keda.MODE, elastic.MODE)
}

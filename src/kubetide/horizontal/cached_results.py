"""What is remembered of the last tick, so that unchanged parts are not computed again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from kubetide.horizontal.batch.hpas import HpaColumns
from kubetide.horizontal.batch.results import Newest
from kubetide.horizontal.decision import Settlement, Verdict
from kubetide.horizontal.facts.specs import Autoscaler
from kubetide.horizontal.facts.views import ScaleView
from kubetide.horizontal.metrics.types import Metric, Tally
from kubetide.horizontal.settings import Settings
from kubetide.units.vectors import BoolVector, Int64Vector


class LastPass(msgspec.Struct, eq=False):
    """The last pass in columns, so that unchanged parts are not computed again (``fleet``).

    Attributes:
        columns: The HPAs; with other ones nothing can be compared.
        overall: (figures, HPAs) what the verdicts were made from.
        cells: The same by cell: (HPAs of the cell,) positions and (figures, HPAs of the cell).
        stored: (HPAs,) which proposals are stored from columns: ``proposals`` at ``slots``.
        repeated: (HPAs,) whose verdicts are those of the pass before.
        before: (HPAs,) settlements of the pass before, where it had the same HPAs.
        newest: The columns of the pass, by which verdicts explain themselves.
        verdicts: (HPAs,)
        settlements: (HPAs,) what came of the verdicts; empty until it is known.
        quiet: (HPAs,) whether nothing was to be written or said, and the status is still the one of that time.
    """

    columns: HpaColumns
    overall: Int64Vector
    cells: Sequence[tuple[Int64Vector, Int64Vector]]
    stored: BoolVector
    proposals: Int64Vector
    slots: Int64Vector
    repeated: BoolVector
    newest: Newest
    before: tuple[Settlement, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    settlements: tuple[Settlement, ...] = ()
    quiet: BoolVector = msgspec.field(default_factory=lambda: np.zeros(0, np.bool_))


class Unchanged(msgspec.Struct, eq=False):
    """A verdict that leaves the target unchanged, and its input.

    Attributes:
        settings, spec, scale: The very objects.
        quick: What says that ``facts`` are equal without looking at them.
        facts: What else must be equal.
        settlement: What came of the verdict; None until it is known.
    """

    verdict: Verdict
    settings: Settings
    spec: Autoscaler
    scale: ScaleView
    quick: tuple[object, ...]
    facts: tuple[object, ...]
    settlement: Settlement | None = None


class SteadyTally(NamedTuple):
    """The tally of an HPA's pods for a metric while all of them counted in full, and none was young.

    Attributes:
        metric, settings, rows: The very objects.
        changes: The table's count.
    """

    metric: Metric
    settings: Settings
    rows: Int64Vector
    changes: int
    tally: Tally

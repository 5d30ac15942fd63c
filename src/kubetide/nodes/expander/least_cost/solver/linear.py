"""Linear and integer programs, solved by HiGHS: deterministic, in one thread, bounded by work and not by time.

HiGHS is an extra and is loaded when the first program is made.
"""

from __future__ import annotations

import importlib.util
import itertools
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from kubetide.nodes.expander.least_cost.solver.problem import FloatVector, Meter
from kubetide.units.vectors import Int64Vector

if TYPE_CHECKING:
    import highspy

INFINITE = float("inf")

_NOT_TRIED = ("mip_heuristic_run_rins", "mip_heuristic_run_rens", "mip_heuristic_run_root_reduced_cost")
"""Heuristics that solve programs within the program: they took nine tenths of the time, and found nothing cheaper."""

_WORK_A_CHECK = 10
"""What HiGHS does at least, in units of ``Meter``, between two questions whether it is to go on."""


def has_solver() -> bool:
    """Return whether HiGHS is installed; it is not loaded."""
    return importlib.util.find_spec("highspy") is not None


class Solution(NamedTuple):
    """The result of a program.

    Attributes:
        objective: Of ``values``; infinite when none were found.
        values: One a column.
        duals: One a row, of a program without integer columns.
        bound: On the objective of any solution, when there are integer columns.
        found: Whether ``values`` keep to all rows.
    """

    objective: float
    values: FloatVector
    duals: FloatVector
    bound: float
    found: bool


class Program:
    """Rows with bounds, and columns with costs and entries, all 0 or more; the cost is minimised or maximised."""

    def __init__(self, lower: FloatVector, upper: FloatVector, *, maximise: bool = False) -> None:
        import highspy  # noqa: PLC0415  # an extra, and 0.4 s to load

        solver = self._solver = highspy.Highs()
        for option, value in (("output_flag", False), ("threads", 1), ("random_seed", 0)):
            solver.setOptionValue(option, value)
        solver.addRows(
            len(lower),
            np.ascontiguousarray(lower, np.float64),
            np.ascontiguousarray(upper, np.float64),
            0,
            np.zeros(len(lower), np.int32),
            np.zeros(0, np.int32),
            np.zeros(0, np.float64),
        )
        if maximise:
            solver.changeObjectiveSense(highspy.ObjSense.kMaximize)
        self._integer = highspy.HighsVarType.kInteger
        self._feasible = int(highspy.SolutionStatus.kSolutionStatusFeasible)
        self._columns = 0
        self._has_integers = False

    def __len__(self) -> int:
        return self._columns

    def add(
        self,
        costs: FloatVector,
        upper: FloatVector,
        starts: Int64Vector,
        rows: Int64Vector,
        entries: FloatVector,
    ) -> None:
        """Add columns; column c has ``entries[starts[c]:starts[c + 1]]`` in the ``rows`` at the same positions."""
        self._solver.addCols(
            len(costs),
            np.ascontiguousarray(costs, np.float64),
            np.zeros(len(costs), np.float64),
            np.ascontiguousarray(upper, np.float64),
            len(rows),
            starts.astype(np.int32),
            rows.astype(np.int32),
            np.ascontiguousarray(entries, np.float64),
        )
        self._columns += len(costs)

    def make_integer(self, columns: Int64Vector) -> None:
        """Restrict these columns to whole numbers."""
        self._solver.changeColsIntegrality(
            len(columns), columns.astype(np.int32), np.full(len(columns), self._integer)
        )
        self._has_integers = True
        for heuristic in _NOT_TRIED:
            self._solver.setOptionValue(heuristic, False)

    def _stop_after(self, checks: int, meter: Meter) -> None:
        """End the next search at HiGHS' so many-th question; in one thread it asks at the same places each time."""
        asked = itertools.count(1)

        def ask(event: highspy.HighsCallbackEvent) -> None:
            if next(asked) > checks:
                meter.cut = True
                event.interrupt()

        self._solver.cbMipInterrupt.clear()
        self._solver.cbMipInterrupt.subscribe(ask)

    def set_costs(self, costs: FloatVector) -> None:
        """Change the costs of all columns."""
        self._solver.changeColsCost(
            self._columns,
            np.arange(self._columns, dtype=np.int32),
            np.ascontiguousarray(costs, np.float64),
        )

    def solve(
        self,
        *,
        nodes: int = 0,
        close_enough: float = 1e-4,
        presolve: bool = True,
        meter: Meter | None = None,
    ) -> Solution:
        """Solve a program.

        Args:
            nodes: Most branch-and-bound nodes, with integer columns.
            close_enough: The share by which the objective may then be off its bound at the end.
            presolve: Whether to look for what can be simplified; of a few dozen columns it takes most of the time.
            meter: Counts the work, and ends a program with integer columns when it is used up; None for no bound.
        """
        solver = self._solver
        solver.setOptionValue("mip_max_nodes", nodes)
        solver.setOptionValue("mip_rel_gap", close_enough)
        solver.setOptionValue("presolve", "choose" if presolve else "off")
        if self._has_integers and meter is not None:
            self._stop_after(meter.left // _WORK_A_CHECK, meter)
        solver.run()
        info: highspy.HighsInfo = solver.getInfo()
        if meter is not None:
            meter.add(info.simplex_iteration_count, solver.getNumRow())
        solution = solver.getSolution()
        found = int(info.primal_solution_status) == self._feasible
        return Solution(
            objective=float(info.objective_function_value) if found else INFINITE,
            values=np.array(solution.col_value, np.float64),
            duals=np.array(solution.row_dual, np.float64),
            bound=float(info.mip_dual_bound) if self._has_integers else float(info.objective_function_value),
            found=found,
        )

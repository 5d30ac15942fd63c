"""Import contracts of our own for import-linter, named in ``pyproject.toml``."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output


class NoCircles(Contract):
    """No module of the packages imports itself over others, imports for types alone counted."""

    packages = fields.ListField(subfield=fields.StringField())

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:  # noqa: ARG002  # the contract's form
        """Look for a circle in each package."""
        circles = []
        for package in self.packages:  # type: ignore[attr-defined]  # a field gives its value
            modules = {package, *graph.find_descendants(package)}
            imported = {
                one: graph.find_modules_directly_imported_by(one) & modules for one in sorted(modules)
            }
            try:
                TopologicalSorter(imported).prepare()
            except CycleError as error:
                circles.append(error.args[1])
        return ContractCheck(kept=not circles, metadata={"circles": circles})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Print one circle of each package that has any."""
        for circle in check.metadata["circles"]:
            output.print_error(" <- ".join(circle))

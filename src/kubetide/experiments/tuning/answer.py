"""The answer of a search: its changes as a patch and as settings, and their effect with its spread."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from kubetide.experiments.sweeps.results import QUANTITIES, figures_of, spread
from kubetide.experiments.tuning.goal import Constraint
from kubetide.experiments.tuning.knobs import Knob
from kubetide.experiments.tuning.search import Trial
from kubetide.objects.yaml_reading import read_documents
from kubetide.simulate.outcome.summary import Summary
from kubetide.simulate.outcome.table import Table, decimal, printable
from kubetide.simulate.scenarios.build import manifests_of
from kubetide.simulate.scenarios.scenario import Scenario


def patch_of(before: Scenario, after: Scenario, base: Path) -> str:
    """Return the objects that differ as patches, a YAML document each; empty where none does.

    ``kubectl patch --patch-file``, a kustomization and ``kubetide what-if --patch`` take them.
    """
    documents = []
    for (kind, old), (_, new) in zip(manifests_of(before, base), manifests_of(after, base), strict=True):
        changed = _difference(old, new)
        if changed:
            meta = {
                name: new["metadata"][name] for name in ("name", "namespace") if new["metadata"].get(name)
            }
            documents.append(
                {
                    "apiVersion": new.get("apiVersion"),
                    "kind": kind.kind,
                    "metadata": {**changed.pop("metadata", {}), **meta},
                    **changed,
                }
            )
    return yaml.safe_dump_all(documents, sort_keys=False) if documents else ""


def _difference(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Return what a merge makes ``new`` of ``old`` with: what is gone is null, a list is there as a whole."""
    found: dict[str, Any] = {name: None for name in old if name not in new}
    for name, value in new.items():
        before = old.get(name)
        if isinstance(value, dict) and isinstance(before, dict):
            inner = _difference(before, value)
            if inner:
                found[name] = inner
        elif value != before or name not in old:
            found[name] = value
    return found


def settings_yaml(knobs: Sequence[Knob], values: Sequence[str]) -> str:
    """Return the values as ``set`` of a policy under test, which `kubetide test` takes."""
    settings = {knob.name: _value(text) for knob, text in zip(knobs, values, strict=True)}
    return yaml.safe_dump({"set": settings}, sort_keys=False)


def _value(text: str) -> Any:
    documents = list(read_documents(text))
    return documents[0].value if documents else None


def trials_csv(
    knobs: Sequence[Knob], minimize: str, constraints: Sequence[Constraint], trials: Sequence[Trial]
) -> bytes:
    """Return a row a trial, in the order in which they were made."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    excess = [f"excess of {constraint.text}" for constraint in constraints]
    writer.writerow([*(knob.name for knob in knobs), minimize, *excess, "kept", "error"])
    for trial in trials:
        over = [f"{one:.6f}" for one in trial.excess] if trial.excess else [""] * len(excess)
        score = "" if trial.error else f"{trial.score:.6f}"
        writer.writerow([*trial.values, score, *over, int(trial.feasible), trial.error])
    return text.getvalue().encode()


def judged_table(before: Sequence[Summary], after: Sequence[Summary]) -> Table:
    """Return the figures of both, run by run the same day and seed: means, the change, its deviation, how often lower."""
    ours, theirs = list(map(figures_of, before)), list(map(figures_of, after))
    return Table(
        columns=("", "as it is", "with changes", "change", "+-", "lower in"),
        rows=tuple(_judged(name, [a[name] for a in ours], [b[name] for b in theirs]) for name in QUANTITIES),
    )


def is_within_spread(name: str, before: Sequence[Summary], after: Sequence[Summary]) -> bool:
    """Return whether a figure's change, run by run, is no larger than its deviation between the runs."""
    change = spread([figures_of(b)[name] - figures_of(a)[name] for a, b in zip(before, after, strict=True)])
    return len(before) > 1 and abs(change.mean) <= change.deviation


def _judged(name: str, ours: Sequence[float], theirs: Sequence[float]) -> tuple[str, ...]:
    differences = [after - before for before, after in zip(ours, theirs, strict=True)]
    there, change = spread(ours).mean, spread(differences)
    digits = 4 if name == "unserved" else 2
    share = f" ({change.mean / there:+.1%})" if there else ""
    sign = "-" if change.mean < 0 else "+"
    return (
        printable(name),
        decimal(there, digits),
        decimal(spread(theirs).mean, digits),
        f"{sign}{decimal(abs(change.mean), digits)}{share}",
        decimal(change.deviation, digits),
        f"{sum(one < 0 for one in differences)} of {len(differences)}",
    )

"""The shipped scenarios by name."""

from __future__ import annotations

import difflib
from pathlib import Path

import kubetide
from kubetide.simulate.scenarios.scenario import ScenarioError

EXAMPLES = Path(kubetide.__file__).parent / "examples"


def shipped() -> dict[str, Path]:
    """Return the scenario file of each example by name: a file, or ``scenario.yaml`` in a folder."""
    alone = {path.stem: path for path in EXAMPLES.glob("*.yaml") if not path.stem.endswith("-manifests")}
    folders = {path.parent.name: path for path in EXAMPLES.glob("*/scenario.yaml")}
    return dict(sorted({**alone, **folders}.items()))


def scenario_path(given: Path) -> Path:
    """Return the file of a path, of a folder with a scenario, or of an example's name.

    A copy of an example in a folder of its name is so played instead of the example.

    Raises: ScenarioError for a bare name that is none of them.
    """
    name = str(given)
    if given.is_dir():
        inside = [given / "scenario.yaml", given / f"{given.name}.yaml"]
        there = next((path for path in inside if path.is_file()), None)
        if there is not None:
            return there
    found = shipped()
    if (given.exists() and name not in found) or given.is_file() or given.suffix or len(given.parts) != 1:
        return given
    if name in found:
        return found[name]
    near = difflib.get_close_matches(name, found, n=1)
    hint = f"did you mean `{near[0]}`?" if near else f"the examples are {', '.join(found)}"
    raise ScenarioError(f"{name}: there is no such file and no example of that name; {hint}")

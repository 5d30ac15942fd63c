"""The vertical suite: recorded runs of upstream's Vertical Pod Autoscaler, by component.

Each file names its component; the cases of one are played by the module ``vertical_<component>``,
which has one function, ``first_difference(case)``.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from typing import Any, cast

from tests.conformance.cases import Case

COMPONENTS = ("admission", "histogram", "recommender", "updater")


def cases(document: Any) -> Iterator[Case]:
    """Give each case with the ``component`` of its file."""
    if isinstance(document, dict) and str(document.get("format", "")).startswith("vpa-oracle/"):
        component = document["component"]
        if component not in COMPONENTS:
            raise ValueError(f"nothing plays {component}; known are {', '.join(COMPONENTS)}")
        for case in document["cases"]:
            yield {**case, "component": component}


def case_id(case: Case) -> str:
    return f"{case['component']}/{case['id']}"


def group(case: Case) -> str:
    return f"{case['component']}/{case['group']}"


def has_steps(case: Case) -> bool:
    return bool(case.get("rounds") or case.get("run"))


def metric_types(case: Case) -> set[str]:
    return set()


def first_difference(case: Case) -> str | None:
    player = importlib.import_module(f"tests.conformance.vertical_{case['component']}")
    return cast("Callable[[Case], str | None]", player.first_difference)(case)

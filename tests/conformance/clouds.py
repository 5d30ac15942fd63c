"""The clouds suite: recorded answers and stories of upstream's cloud providers.

A file names its provider; the module ``tests.conformance.clouds_<provider>`` plays its cases.
Such a module has ``first_difference(case)``, as a suite has. A provider without a module fails
each of its cases.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator
from typing import Any, Protocol, cast

from tests.conformance.cases import Case

PREFIX = "clouds_"


class ProviderSuite(Protocol):
    """The functions that a provider's module offers."""

    def first_difference(self, case: Case) -> str | None:
        """Play a case: ``kind``, ``input``, ``expect``. None when every answer is the recorded one."""
        ...


def cases(document: Any) -> Iterator[Case]:
    """Yield the cases of a file, each with its provider; none if the file is of another kind."""
    if isinstance(document, dict) and "provider" in document and "vectors" in document:
        for vector in document["vectors"]:
            yield vector | {"provider": document["provider"]}


def case_id(case: Case) -> str:
    return str(case["id"])


def group(case: Case) -> str:
    return f"{case['provider']}/{case['kind']}"


def has_steps(case: Case) -> bool:
    return bool(case["input"].get("steps"))


def metric_types(_case: Case) -> set[str]:
    return set()


def first_difference(case: Case) -> str | None:
    """Play a case with the module of its provider."""
    name = f"tests.conformance.{PREFIX}{case['provider']}"
    if importlib.util.find_spec(name) is None:
        return f"there is no module {name}"
    return cast("ProviderSuite", importlib.import_module(name)).first_difference(case)

"""Checks of the environment variables that providers read their credentials from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kubetide.ports.errors import CloudError


def check_trimmed(environment: Mapping[str, str], names: Iterable[str]) -> None:
    """Raise CloudError for the first of these variables whose value begins or ends with white space."""
    for name in names:
        value = environment.get(name, "")
        if value != value.strip():
            raise CloudError(
                f"the environment variable {name} begins or ends with white space, such as the line end of a file; "
                "remove it"
            )

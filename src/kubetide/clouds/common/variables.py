"""What environment variables of providers must not have: the line ends of files that they were read from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kubetide.ports.errors import CloudError


def check_trimmed(environment: Mapping[str, str], names: Iterable[str]) -> None:
    """Raise CloudError that names the first of these variables with white space around its value."""
    for name in names:
        value = environment.get(name, "")
        if value != value.strip():
            raise CloudError(
                f"the environment variable {name} begins or ends with white space, such as the line end of a file; "
                "remove it"
            )

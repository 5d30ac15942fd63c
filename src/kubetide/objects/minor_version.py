"""The minor version of Kubernetes by whose rules decisions are made, where v1.36 and v1.37 differ.

Source: changes of the scheduler and the HPA controller from v1.36.2 to v1.37.2.
"""

from __future__ import annotations

import re
from typing import Final

OLDEST: Final = 36
NEWEST: Final = 37

_VERSION = re.compile(r"v?1\.(\d{1,4})\b")


def minor_of(version: str) -> int:
    """Return the minor version whose rules hold for a server of that version, or 36 for an empty one.

    Of older servers that is 36, of newer ones 37: the nearest that is known. Raises ValueError for what is no
    version such as ``1.37``, ``v1.37.2`` or ``v1.37.2-eks-1``.
    """
    if not version:
        return OLDEST
    found = _VERSION.match(version)
    if found is None:
        raise ValueError(f"{version!r} is no version of Kubernetes; write 1.{OLDEST} or 1.{NEWEST}")
    return min(max(int(found[1]), OLDEST), NEWEST)


def check_version(version: str) -> None:
    """Raise ValueError for a setting that is neither empty nor a version of which the rules are known."""
    if version not in {"", *(f"1.{minor}" for minor in range(OLDEST, NEWEST + 1))}:
        raise ValueError(f"--kubernetes-version={version}: write 1.{OLDEST} or 1.{NEWEST}")

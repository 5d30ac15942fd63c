"""Prices of a core and a GiB."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec
import yaml

from kubetide.ports.errors import KubetideError

HOURS_PER_MONTH: Final = 730
_GIB: Final = 1 << 30


class PriceError(KubetideError):
    """An unreadable price list; the text names the file, the field and the fix."""


class Prices(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """A price list.

    Attributes:
        cpu: Of a core for an hour.
        memory: Of a GiB for an hour.

    The defaults are those of OpenCost for machines whose price it does not know (USD, us-central1 on demand).
    """

    cpu: float = 0.031611
    memory: float = 0.004237
    currency: str = "USD"

    def month(self, millicores: float, memory_bytes: float) -> float:
        """Return the price of amounts for a month of 730 hours."""
        return HOURS_PER_MONTH * (millicores / 1000 * self.cpu + memory_bytes / _GIB * self.memory)


def read_prices(path: Path) -> Prices:
    """Return the price list of a YAML file: ``cpu``, ``memory``, ``currency``. Raises: PriceError."""
    try:
        found = msgspec.convert(yaml.safe_load(path.read_text(encoding="utf-8")), Prices)
    except OSError as error:
        raise PriceError(f"{path}: cannot be read: {error.strerror}; check the path") from error
    except (UnicodeDecodeError, yaml.YAMLError, msgspec.ValidationError) as error:
        raise PriceError(
            f"{path}: {error}; write cpu and memory as prices of a core and of a GiB for an hour, and currency"
        ) from error
    if not (0 <= found.cpu < 1e6 and 0 <= found.memory < 1e6):
        raise PriceError(f"{path}: cpu and memory must be from 0 to 1,000,000")
    return found

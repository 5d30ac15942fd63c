"""Many quantities at once: what metrics-server sends, in nano-cores and KiB, as a column of thousandths."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from kubetide.cluster.metric_ports.metric_answers import milli_of
from kubetide.units.vectors import Int64Vector

# Up to so many digits ``milli_of`` needs no parser either; what is longer is left to it.
_DIGITS = {"n": 12, "Ki": 11}

_read_numbers = msgspec.json.Decoder(list[int]).decode


def milli_column(texts: Sequence[str]) -> Int64Vector:
    """Return (texts,) thousandths, each as ``milli_of`` gives it. Raises: QuantityError."""
    joined = ",".join(texts)
    for suffix in _DIGITS:
        alike = joined.count(suffix)
        if 2 * alike > len(texts):
            found = _with_suffix(texts, joined, suffix, whole=alike == len(texts))
            if found is not None:
                return found
    return np.array([milli_of(text) for text in texts], np.int64)


def _with_suffix(texts: Sequence[str], joined: str, suffix: str, *, whole: bool) -> Int64Vector | None:
    """Read a column most of which has this suffix; None where it is not as simple as that."""
    others = [] if whole else [at for at, text in enumerate(texts) if not text.endswith(suffix)]
    if others:
        alike = list(texts)
        for at in others:
            alike[at] = f"0{suffix}"
        joined = ",".join(alike)
    numbers = _numbers(joined, suffix, len(texts))
    if numbers is None:
        return None
    milli = -(-numbers // 1_000_000) if suffix == "n" else numbers * 1_024_000
    for at in others:
        milli[at] = milli_of(texts[at])
    return milli


def _numbers(joined: str, suffix: str, count: int) -> Int64Vector | None:
    """Read the digits before the suffix as one list of JSON; None if any text is more than those two."""
    # JSON allows spaces around numbers, a quantity does not.
    if not joined.endswith(suffix) or " " in joined or not joined.isprintable():
        return None
    digits = joined.replace(f"{suffix},", ",").removesuffix(suffix)
    try:
        numbers = np.array(_read_numbers(f"[{digits}]"), np.int64)
    except (ValueError, OverflowError):
        return None
    if len(numbers) != count or numbers.min() < 0 or numbers.max() >= 10 ** _DIGITS[suffix]:
        return None
    return numbers

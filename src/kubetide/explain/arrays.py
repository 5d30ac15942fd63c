"""Columns in records: JSON lists of whole numbers, by msgspec's hooks."""

from __future__ import annotations

from typing import Any

import numpy as np


def encode_array(value: Any) -> Any:
    """Return a column as a list, for ``enc_hook``."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    raise NotImplementedError(f"{type(value).__name__} has no JSON form")


def decode_array(kind: type, value: Any) -> Any:
    """Return a list as a column, for ``dec_hook``."""
    if kind is np.ndarray or getattr(kind, "__origin__", None) is np.ndarray:
        return np.array(value, np.int64)
    raise NotImplementedError(f"{kind} has no JSON form")

"""Draws that are a function of a seed and of keys: no generator, no state, no order of calls.

The same (seed, keys) gives the same draw on every machine, and a draw more or less elsewhere moves
no other. Keys name what is drawn for: ``uniform(seed, 0.9, 1.1, "boot", node_name)``. A text and
an integer that looks like it are different keys. Not for secrets.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hashlib import blake2b
    from statistics import NormalDist

# Kubernetes leaves out vowels and look-alikes, so that no suffix spells a word.
_SUFFIX_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"

Draw = Callable[[int, str, int], float]
"""A draw from [0, 1) by seed, purpose and time, as ``unit_interval`` gives it."""


@cache
def _hash() -> Callable[..., blake2b]:
    from hashlib import blake2b  # noqa: PLC0415  it loads OpenSSL, and answers from records draw nothing

    return blake2b


def _digest(seed: int, keys: tuple[str | int, ...], size: int) -> bytes:
    # repr keeps ("ab", "c") and ("a", "bc") apart, and 1 and "1".
    return _hash()(repr((seed, keys)).encode(), digest_size=size).digest()


@cache
def _standard_normal() -> NormalDist:
    from statistics import NormalDist  # noqa: PLC0415  as above

    return NormalDist()


def unit_interval(seed: int, *keys: str | int) -> float:
    """Return a draw from [0, 1), of 53 bits."""
    return (int.from_bytes(_digest(seed, keys, 8), "big") >> 11) / (1 << 53)


def uniform(seed: int, low: float, high: float, *keys: str | int) -> float:
    """Return a draw from [low, high)."""
    return low + (high - low) * unit_interval(seed, *keys)


def normal(seed: int, mean: float, sigma: float, *keys: str | int) -> float:
    """Return a draw from the normal distribution; ``sigma`` is its standard deviation."""
    # The middle of the drawn step, as the inverse is infinite at 0 and 1.
    return mean + sigma * _standard_normal().inv_cdf(unit_interval(seed, *keys) + 0.5 / (1 << 53))


def uuid_of(seed: int, *keys: str | int) -> str:
    """Return a UUID with the version and variant bits of a random one (RFC 9562, version 4)."""
    raw = bytearray(_digest(seed, keys, 16))
    raw[6] = raw[6] & 0x0F | 0x40
    raw[8] = raw[8] & 0x3F | 0x80
    text = raw.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def name_suffix(seed: int, *keys: str | int) -> str:
    """Return five characters as ``generateName`` appends them."""
    number = int.from_bytes(_digest(seed, keys, 8), "big")
    chars = []
    for _ in range(5):
        number, index = divmod(number, len(_SUFFIX_ALPHABET))
        chars.append(_SUFFIX_ALPHABET[index])
    return "".join(chars)

"""The JSON of a whole state in pieces that are built on demand: it is never in memory at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

PIECES_FROM = 10_000
"""Pods from which on a whole state is recorded in pieces; a smaller one is encoded at once."""

_PIECE = 1_000
"""Objects of one piece."""


def in_pieces(
    first: bytes,
    arrays: Mapping[str, Sequence[object]],
    last: bytes,
    encode: Callable[[Sequence[object]], bytes],
) -> Iterator[bytes]:
    """Yield two JSON objects joined, with named arrays between their members; an empty one is left out.

    Args:
        first, last: The objects that begin and end the whole.
        encode: Gives a part of an array as JSON.
    """
    begin, end = first.removesuffix(b"}"), last.removeprefix(b"{")
    yield begin
    comma = b"," if begin != b"{" else b""
    for name, items in arrays.items():
        for at in range(0, len(items), _PIECE):
            opening = comma + b'"%s":[' % name.encode() if at == 0 else b","
            yield opening + encode(items[at : at + _PIECE])[1:-1]
        if items:
            yield b"]"
            comma = b","
    yield end if end == b"}" else comma + end

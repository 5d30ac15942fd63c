"""The file format of figures: ``records/nodes-0001.figures`` beside ``nodes-0001.jsonl``.

The file is a row of blocks, one for each record in which a figure has changed. A block is a head (magic, checksum, length,
time) and a MessagePack array: the series that are new, numbered from 0 in order of their coming; then the numbers of
the series that have changed (uint32) and their values (float64), both little-endian. NaN stands for a value that is not
known, or no longer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from struct import Struct, pack
from typing import Final, NamedTuple
from zlib import crc32

import msgspec
import numpy as np

from kubetide.units.time import Instant
from kubetide.units.vectors import Float64Vector, Int64Vector

_HEAD: Final = Struct("<4sIIq")
_MAGIC: Final = b"KTF1"


class SeriesKey(NamedTuple):
    """The key of a series: kind, object, and the figure's name."""

    kind: str
    name: str
    figure: str


class Block(NamedTuple):
    """The changes at one time: ``ids`` and ``values`` side by side."""

    now: Instant
    new: list[SeriesKey]
    ids: Int64Vector
    values: Float64Vector


_decoder = msgspec.msgpack.Decoder(tuple[list[tuple[str, str, str]], bytes, bytes])


def encode_block(
    now: Instant, new: Sequence[SeriesKey], ids: Sequence[int], values: Sequence[float]
) -> bytes:
    """Return a block as bytes."""
    count = len(ids)
    body = msgspec.msgpack.encode((new, pack(f"<{count}I", *ids), pack(f"<{count}d", *values)))
    return _HEAD.pack(_MAGIC, crc32(body), len(body), now) + body


def decode_blocks(data: bytes) -> Iterator[tuple[Block, int]]:
    """Yield the blocks at the beginning of ``data``, each with its end; stops at a cut or corrupt one."""
    at = 0
    while at + _HEAD.size <= len(data):
        magic, checksum, length, now = _HEAD.unpack_from(data, at)
        end = at + _HEAD.size + length
        body = data[at + _HEAD.size : end]
        if magic != _MAGIC or len(body) < length or crc32(body) != checksum:
            return
        new, ids, values = _decoder.decode(body)
        yield (
            Block(
                Instant(now),
                [SeriesKey(*one) for one in new],
                np.frombuffer(ids, "<u4").astype(np.int64),
                np.frombuffer(values, "<f8").astype(np.float64),
            ),
            end,
        )
        at = end

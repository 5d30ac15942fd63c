"""The record of the whole state, from which the loop itself starts anew."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from kubetide.explain.pieces import PIECES_FROM
from kubetide.nodes.core import as_read_back, encode_delta, encode_in_pieces
from kubetide.nodes.records.export import export_state
from kubetide.nodes.state import State


def start_from_record(state: State) -> bytes | Iterator[bytes]:
    """Make the state what the record of it holds, so that a replay from there cannot differ; return the record's bytes.

    That is the memory as it reads there, and the same objects, of which much is known already. The bytes of a large state
    come in pieces.
    """
    keys = sorted(state.pods)
    everything = export_state(state, keys)
    encoded = encode_in_pieces(everything) if len(keys) >= PIECES_FROM else encode_delta(everything)
    state.apply(replace(everything, memory=as_read_back(state.memory)), full=True, keys=keys)
    return encoded

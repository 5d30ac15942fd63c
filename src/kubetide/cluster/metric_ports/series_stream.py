"""Series out of an answer of Prometheus while it arrives, so that a large answer is never held as a whole.

Source: Prometheus 3, HTTP API v1: results of type matrix and vector.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from kubetide.ports.errors import MetricsError
from kubetide.ports.metrics import TimeSeries
from kubetide.units.quantity import bytes_to_text

_RESULT = re.compile(rb'"result"\s*:\s*\[')
_HEAD = 64 << 10
"""Bytes within which an answer says what it is."""

_LONGEST = 16 << 20
"""Bytes of one series."""

_SPACE = b" \t\r\n,"


class _Item(msgspec.Struct):
    metric: dict[str, str] = {}
    values: tuple[tuple[float, str], ...] = ()
    value: tuple[float, str] | None = None


class _Refusal(msgspec.Struct):
    error: str
    error_type: str = msgspec.field(default="", name="errorType")


class _Rest(msgspec.Struct):
    warnings: tuple[str, ...] = ()


_items = msgspec.json.Decoder(_Item)


class SeriesCutter:
    """Cuts the bytes of an answer into series."""

    def __init__(self) -> None:
        self._left = b""
        self._begun = False
        self._ended = False
        self._looked = 0

    def take(self, piece: bytes) -> Iterator[TimeSeries]:
        """Take the next bytes; yield the series that end in them. Raises: MetricsError for what is none."""
        if self._ended:
            self._left = (self._left + piece)[:_HEAD]
            return
        self._left += piece
        if not self._begun:
            found = _RESULT.search(self._left, 0, _HEAD)
            if found is None:
                if len(self._left) > _HEAD:
                    raise MetricsError("the answer is not one of Prometheus' API: it has no result")
                return
            self._begun, self._left = True, self._left[found.end() :]
        yield from self._cut()

    def _cut(self) -> Iterator[TimeSeries]:
        at = 0
        while True:
            while at < len(self._left) and self._left[at] in _SPACE:
                at += 1
            if self._left[at : at + 1] == b"]":
                self._ended, self._left = True, self._left[at + 1 : at + 1 + _HEAD]
                return
            found = self._one(at)
            if found is None:
                break
            one, at = found
            yield one
        self._left = self._left[at:]
        self._looked = max(self._looked - at, 0)
        if len(self._left) > _LONGEST:
            raise MetricsError(
                f"one series of the answer is longer than {bytes_to_text(_LONGEST)} and is not read; ask for a shorter "
                "time or a longer step"
            )

    def _one(self, begin: int) -> tuple[TimeSeries, int] | None:
        """Return the series that begins there and where it ends; None while it has not ended.

        A text that is a whole JSON object is no beginning of a longer one, so that the first closing brace up to
        which the text can be read ends the series.
        """
        end = self._left.find(b"}", max(begin, self._looked))
        while end >= 0:
            try:
                item = _items.decode(self._left[begin : end + 1])
            except msgspec.ValidationError as error:
                raise MetricsError(f"the answer is not one of Prometheus' API: {error}") from error
            except (msgspec.DecodeError, UnicodeDecodeError):
                end = self._left.find(b"}", end + 1)
                continue
            values = item.values if item.value is None else (item.value,)
            self._looked = 0
            return TimeSeries(item.metric, values), end + 1
        self._looked = len(self._left)
        return None

    def end(self) -> None:
        """Check that the answer was whole. Raises: MetricsError for a refusal, and for one that broke off."""
        if self._ended:
            return
        if not self._begun:
            try:
                refusal = msgspec.json.decode(self._left, type=_Refusal)
            except (msgspec.MsgspecError, UnicodeDecodeError) as error:
                raise MetricsError(f"the answer is not one of Prometheus' API: {error}") from error
            raise MetricsError(f"{refusal.error_type}: {refusal.error}")
        raise MetricsError("the answer of Prometheus broke off")

    def warnings(self) -> tuple[str, ...]:
        """Return what the server warns of after the series, such as that the answer is partial."""
        try:
            return msgspec.json.decode(b'{"data":{"result":[]' + self._left, type=_Rest).warnings
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return ()

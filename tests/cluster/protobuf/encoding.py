"""The other side of the wire: objects of the API, drawn from a seed, and as a Go server writes them in protobuf."""

from __future__ import annotations

import random
import string
from operator import attrgetter

from kubetide.objects.api_types import (
    DURATION,
    FIELDS_V1,
    INT_OR_STRING,
    MICRO_TIME,
    QUANTITY,
    RAW_EXTENSION,
    TIME,
    api_types,
)
from kubetide.objects.protobuf import MAGIC
from kubetide.units.time import Instant, format_rfc3339, format_rfc3339_micro, parse_rfc3339

_NANOSECONDS = 1_000_000_000


def varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def block(number, content):
    return varint(number << 3 | 2) + varint(len(content)) + content


def number_of(number, value):
    return varint(number << 3) + varint(value)


def message(value, type_name):
    """Encode an object's JSON, fields in the order of their numbers; what JSON leaves out is left out or, as Go does for
    what is no pointer, written as zero.
    """
    parts = []
    for field in sorted(api_types()[type_name], key=attrgetter("number")):
        if not field.name:
            parts.append(block(field.number, message(value, field.type)))
            continue
        said, kind = value.get(field.name), field.type
        if said is None:
            if not field.keeps_zero:
                parts.append(zero(field.number, kind))
        elif kind.startswith("[]"):
            parts += [one(field.number, item, kind[2:]) for item in said]
        elif kind.startswith("{}"):
            parts += [
                block(field.number, block(1, key.encode()) + one(2, item, kind[2:]))
                for key, item in said.items()
            ]
        else:
            parts.append(one(field.number, said, kind))
    return b"".join(parts)


def zero(number, kind):
    if kind in {"int", "bool"}:
        return number_of(number, 0)
    if kind in {"string", TIME}:
        return block(number, b"")
    return b""


def one(number, value, kind):
    if kind in {"int", "bool"}:
        return number_of(number, int(value))
    return block(number, content(value, kind))


def content(value, kind):
    if kind in {"string", "bytes"}:
        return value.encode()
    if kind == QUANTITY:
        return block(1, value.encode())
    if kind == INT_OR_STRING:
        if isinstance(value, int):
            return number_of(1, 0) + number_of(2, value)
        return number_of(1, 1) + number_of(2, 0) + block(3, value.encode())
    if kind in {TIME, MICRO_TIME}:
        at = parse_rfc3339(value)
        return number_of(1, at // _NANOSECONDS) + number_of(2, at % _NANOSECONDS)
    if kind in {FIELDS_V1, RAW_EXTENSION}:
        return block(1, b"{}")
    if kind == DURATION:
        return number_of(1, 60 * _NANOSECONDS)
    return message(value, kind)


def body(api_version, kind, raw):
    """Return a body as it is sent."""
    type_meta = block(1, api_version.encode()) + block(2, kind.encode())
    return MAGIC + block(1, type_meta) + block(2, raw) + block(3, b"") + block(4, b"")


def list_body(api_version, kind, raws, *, version="7", more=""):
    metadata = block(1, b"") + block(2, version.encode()) + block(3, more.encode())
    raw = block(1, metadata) + b"".join(block(2, one) for one in raws)
    return body(api_version, f"{kind}List", raw)


def frame(event_type, whole):
    """Return an event of a watch."""
    event = block(1, event_type.encode()) + block(2, block(1, whole))
    return len(event).to_bytes(4, "big") + event


class Drawn:
    """Draws objects of the API from a seed: any fields, so mostly ones that nobody reads."""

    def __init__(self, seed):
        self._random = random.Random(seed)

    def object(self, type_name, depth=0):
        """Return an object's JSON as a Go server writes it: zeros and empty lists are left out where Go leaves them out."""
        found = {}
        share = max(0.55 - 0.09 * depth, 0.1)
        for field in api_types()[type_name]:
            if not field.name:
                found |= self.object(field.type, depth)
            elif self._random.random() < share and depth < 8:
                found[field.name] = self._field(field, depth + 1)
        return found

    def _field(self, field, depth):
        kind = field.type
        if kind.startswith("[]"):
            return [self._value(kind[2:], depth, zero=True) for _ in range(self._random.randint(1, 3))]
        if kind.startswith("{}"):
            count = self._random.randint(1, 3)
            return {self._text(): self._value(kind[2:], depth, zero=True) for _ in range(count)}
        return self._value(kind, depth, zero=field.keeps_zero)

    def _value(self, kind, depth, *, zero):
        draw = self._random
        if zero and draw.random() < 0.2 and kind in {"string", "int", "bool"}:
            return {"string": "", "int": 0, "bool": False}[kind]
        if kind in {"string", "bytes"}:
            return self._text()
        if kind == "int":
            return draw.choice([1, -1, 300, 2**31 - 1, -(2**31), 2**40])
        if kind == "bool":
            return True
        if kind == QUANTITY:
            return draw.choice(["0", "100m", "1", "128Mi", "1500m", "12e6"])
        if kind == INT_OR_STRING:
            return draw.choice([80, "http", "25%"])
        if kind in {TIME, MICRO_TIME}:
            at = Instant(draw.randint(0, 4_000_000_000) * _NANOSECONDS)
            return format_rfc3339(at) if kind == TIME else format_rfc3339_micro(at)
        if kind in {FIELDS_V1, RAW_EXTENSION}:
            return {}
        if kind == DURATION:
            return "1m0s"
        return self.object(kind, depth)

    def _text(self):
        # Few of them, so that objects share some; and long and foreign ones.
        draw = self._random
        if draw.random() < 0.6:
            return draw.choice(["app", "web", "True", "Ready", "node-1", "größe", "x" * 2_000])
        return "".join(draw.choices(string.ascii_lowercase, k=draw.randint(1, 40)))

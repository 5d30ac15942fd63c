"""From messages to structs: a reader is one expression, compiled for its struct.

    lambda m: Toleration(key=texts[m.key], ..., toleration_seconds=m.toleration_seconds if m.HasField(...) else None)

Written out so, a condition is read in 40 % of the time that a loop over its fields takes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from kubetide.cluster.protobuf.fields import ModelField, model_fields
from kubetide.cluster.protobuf.messages import AMOUNT, ENTRY, INSTANT, message_name, message_types
from kubetide.cluster.protobuf.shared import ABSENT, Pieces, Shared, read_text, shared_whole
from kubetide.cluster.protobuf.specs import Specs
from kubetide.cluster.protobuf.statuses import Statuses
from kubetide.objects.meta import ObjectMeta
from kubetide.objects.pod import PodSpec
from kubetide.objects.protobuf import decode_message
from kubetide.units.time import Instant, format_rfc3339, seconds

_MINUTE = seconds(60)
_SECONDS = tuple(f"{second:02d}Z" for second in range(60))

Message = Any
"""A message of one of our types; what it holds is known by its type's descriptor only."""

Reader = Callable[[Message], Any]


class Readers:
    """Readers of messages; all share what they have read.

    Args:
        roots: The struct of each API type of objects.
    """

    def __init__(self, roots: Mapping[str, Any]) -> None:
        self.types = message_types(roots)
        self._instant = self.types[INSTANT].FromString
        self._names: dict[str, Any] = {
            "texts": Shared(read_text),
            "times": Shared(_unless_absent(self._time)),
            "entries": Shared(self._entry_reader(read_text)),
            "amounts": Shared(self._entry_reader(self._amount)),
        }
        """What the expressions speak of."""

    def reader(self, model: Any, type_name: str, **said: str) -> Reader:
        """Return what makes a struct of a message.

        Args:
            model: The struct.
            type_name: The API type of the message.
            said: Fields that the message does not hold.
        """
        members = self._members(model, type_name)
        members += [f"{name}={value!r}" for name, value in said.items()]
        return self._compiled(f"{self._named(model)}({', '.join(members)})")

    def _members(self, model: Any, type_name: str) -> list[str]:
        """Return the arguments that a struct is made with, as they are read from the message ``m``."""
        return [
            f"**{self._named(self._inlined(field))}[m.{field.name}]"
            if field.form == "inlined"
            else f"{field.name}={self._value(field)}"
            for field in model_fields(model, type_name)
        ]

    def _value(self, field: ModelField) -> str:
        at = f"m.{field.name}"
        if field.many == "list" and field.form == "message":
            read = self._named(self.reader(field.model, field.type))
            return f"tuple(map({read}, v)) if (v := {at}) else None"
        if field.many != "one":
            return f"{self._named(self._whole(field))}[tuple(v)] if (v := {at}) else None"
        if field.form == "message":
            read = f"{self._named(self.reader(field.model, field.type))}({at})"
            return f"(meta := {read})" if field.model is ObjectMeta else read
        if field.form == "apart" and field.model is PodSpec:
            return f"{self._named(self._specs(field).read)}({at}, meta.owner_references)"
        if field.form == "apart":
            return f"{self._named(self._statuses(field).read)}({at})"
        if field.form == "number" and field.optional:
            return f"{at} if m.HasField({field.name!r}) else None"
        if field.form in {"number", "name"}:
            return at
        return f"{self._shared(field)}[{at}]"

    def _whole(self, field: ModelField) -> Shared[Pieces, Any]:
        """Return what holds the lists, or maps, of a field."""
        if field.many == "map":
            entries = self._names["amounts" if field.form == "amount" else "entries"]
            return shared_whole(lambda pieces: dict(map(entries.__getitem__, pieces)))
        items = self._names[self._shared(field)]
        return shared_whole(lambda pieces: tuple(map(items.__getitem__, pieces)))

    def _shared(self, field: ModelField) -> str:
        """Return the name of what holds the pieces of a field."""
        if field.form == "text":
            return "texts"
        if field.form == "time":
            return "times"
        if field.form == "struct":
            absent = None if field.optional else field.model()
            return self._named(Shared(_unless_absent(self._piece_reader(field), absent)))
        return self._named(Shared(_unless_absent(lambda piece: decode_message(piece, field.type))))

    def _inlined(self, field: ModelField) -> Shared[bytes, dict[str, Any]]:
        members = ", ".join(self._members(field.model, field.type))
        read, parse = self._compiled(f"dict({members})"), self._parser(field.type)
        return Shared(_unless_absent(lambda piece: read(parse(piece)), {}))

    def _specs(self, field: ModelField) -> Specs:
        (affinity,) = (one for one in model_fields(PodSpec, field.type) if one.name == "affinity")
        affinities = self._names[self._shared(affinity)]
        return Specs(self._piece_reader(field), texts=self._names["texts"], affinities=affinities)

    def _statuses(self, field: ModelField) -> Statuses:
        parse, given = self._parser(field.type), ("phase", "conditions")
        members = [
            f"{one.name}={one.name if one.name in given else self._value(one)}"
            for one in model_fields(field.model, field.type)
        ]
        made = self._compiled(f"{self._named(field.model)}({', '.join(members)})", *given)
        return Statuses(
            self._piece_reader(field), lambda rest, *said: made(parse(rest), *said), self._names["times"]
        )

    def _piece_reader(self, field: ModelField) -> Callable[[bytes], Any]:
        read, parse = self.reader(field.model, field.type), self._parser(field.type)
        return lambda piece: read(parse(piece))

    def _parser(self, type_name: str) -> Callable[[bytes], Message]:
        parse: Callable[[bytes], Message] = self.types[message_name(type_name)].FromString
        return parse

    def _entry_reader(self, value_of: Callable[[bytes], Any]) -> Callable[[bytes], tuple[str | None, Any]]:
        parse = self.types[ENTRY].FromString

        def read(piece: bytes) -> tuple[str | None, Any]:
            entry = parse(piece)
            return read_text(entry.key), value_of(entry.value)

        return read

    def _amount(self, piece: bytes) -> str | None:
        return read_text(self.types[AMOUNT].FromString(piece).text)

    def _time(self, piece: bytes) -> str | None:
        """Return a time as JSON has it, None for the zero time, which is an empty message."""
        if not piece:
            return None
        since: int = self._instant(piece).seconds
        minute, second = divmod(since, 60)
        return _up_to_second(minute) + _SECONDS[second]

    def _named(self, value: Any) -> str:
        """Return a name by which an expression can speak of something."""
        name = f"n{len(self._names)}"
        self._names[name] = value
        return name

    def _compiled(self, expression: str, *given: str) -> Callable[..., Any]:
        made: Callable[..., Any] = eval(f"lambda {', '.join(('m', *given))}: {expression}", self._names)  # noqa: S307  the text is this class's own
        return made


@lru_cache(maxsize=4_096)
def _up_to_second(minute: int) -> str:
    """Return the text of the times of a minute but for their seconds."""
    return format_rfc3339(Instant(minute * _MINUTE)).removesuffix(_SECONDS[0])


def _unless_absent(read: Callable[[bytes], Any], absent: Any = None) -> Callable[[bytes], Any]:
    return lambda piece: absent if piece == ABSENT else read(piece)

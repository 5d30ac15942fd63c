"""YAML and JSON texts read as Kubernetes tools read them.

A plain scalar means what it means to ``kubectl`` (sigs.k8s.io/yaml, a YAML 1.1 reader): ``yes``,
``no``, ``on``, ``off``, ``y``, ``n`` are booleans, ``0777`` is octal, ``1e3`` is the number 1000;
``12:30`` and dates stay texts. So a label ``enabled: yes`` is a boolean and is refused as kubectl
refuses it, instead of turning into another text. A whole float is an int, members that are null
are dropped (to the API server they are absent), keys are texts, and a key given twice is an error.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator

_TRUE = frozenset(["y", "Y", "yes", "Yes", "YES", "on", "On", "ON", "true", "True", "TRUE"])
_FALSE = frozenset(["n", "N", "no", "No", "NO", "off", "Off", "OFF", "false", "False", "FALSE"])
_NULL = frozenset(("", "~", "null", "Null", "NULL"))
_INT = re.compile(r"[-+]?(?:0b[01_]+|0x[0-9a-fA-F_]+|0o?[0-7_]+|0|[1-9][0-9_]*)", re.ASCII)
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", re.ASCII)
# What the reader says of a scalar without quotes and without a written tag.
_PLAIN = "!plain"
# Deeper than any object; it stops texts made to exhaust the stack.
_MAX_DEPTH = 100
# Aliases may not blow a text up: without them it has no more values than characters.
_VALUES_OF_A_SMALL_TEXT = 10_000
_VALUES_A_CHARACTER = 2
_MAX_VALUES = 5_000_000
# Characters of a whole number; longer ones are no numbers that anybody counts with.
_LONGEST_NUMBER = 400


class _Loader(yaml.CSafeLoader):
    """Leaves the meaning of plain scalars to ``_resolved``; only its node tree is used."""

    yaml_implicit_resolvers = {None: [(_PLAIN, re.compile(""))]}  # noqa: RUF012  (PyYAML declares it so)


class YamlError(ValueError):
    """A text that is neither YAML nor JSON; ``line`` and ``document`` count from 1."""

    def __init__(self, line: int, detail: str, document: int = 1) -> None:
        super().__init__(f"line {line}: {detail}")
        self.line = line
        self.detail = detail
        self.document = document


@dataclass(frozen=True, slots=True)
class Document:
    """One document of a text: its number and first line, both from 1, and its value."""

    number: int
    line: int
    value: Any
    node: yaml.Node | None = None

    def line_of(self, path: str) -> int:
        """Return the line of the deepest part of a field path that the text has, or the document's."""
        line, node = self.line, self.node
        for part in _PATH_PART.findall(path):
            node = _member(node, part[0] or part[1])
            if node is None:
                break
            line = node.start_mark.line + 1
        return line


_PATH_PART = re.compile(r"([^.\[\]]+)|\[([^\]]*)\]")


def _member(node: yaml.Node | None, part: str) -> yaml.Node | None:
    if isinstance(node, yaml.SequenceNode):
        return node.value[int(part)] if part.isdigit() and int(part) < len(node.value) else None
    if isinstance(node, yaml.MappingNode):
        return next((value for key, value in node.value if key.value == part), None)
    return None


def read_documents(text: str | bytes, *, last_key_wins: bool = False) -> Iterator[Document]:
    """Yield the documents that are not empty. With ``last_key_wins`` a key may be given twice in one map.

    Raises: YamlError.
    """
    if isinstance(text, bytes):
        try:
            text = text.decode("utf-8-sig")
        except UnicodeDecodeError as exc:
            line = exc.object.count(b"\n", 0, exc.start) + 1
            raise YamlError(line, "the text is not UTF-8") from exc
    if text.lstrip()[:1] in {"{", "["}:
        try:
            value = msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError):
            pass  # flow style YAML looks like JSON
        else:
            yield Document(1, 1, _plain_json(value, 0))
            return
    _refuse_deep(text)
    number = 0
    most = min(_MAX_VALUES, _VALUES_OF_A_SMALL_TEXT + _VALUES_A_CHARACTER * len(text))
    builder = _Builder(most, last_key_wins=last_key_wins)
    try:
        for node in yaml.compose_all(text, Loader=_Loader):
            number += 1
            value = builder.value(node, 0)
            if value is not None:
                yield Document(number, node.start_mark.line + 1, value, node)
    except yaml.MarkedYAMLError as exc:
        mark = exc.problem_mark or exc.context_mark
        problem = exc.problem or exc.context or "it cannot be read"
        raise YamlError(mark.line + 1 if mark else 1, f"malformed YAML: {problem}", number + 1) from exc
    except yaml.YAMLError as exc:
        raise YamlError(1, f"malformed YAML: {exc}", number + 1) from exc
    except YamlError as exc:
        raise YamlError(exc.line, exc.detail, number) from None


def _refuse_deep(text: str) -> None:
    """Raise YamlError for deep nesting: the composer recurses in C and would overflow the stack."""
    depth = 0
    try:
        for event in yaml.parse(text, Loader=_Loader):
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
                if depth > _MAX_DEPTH:
                    line = event.start_mark.line + 1 if event.start_mark else 1
                    raise YamlError(line, "the value is nested too deeply")
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
    except yaml.YAMLError:
        return  # the composer stops at the same place and says where


def _plain_json(value: Any, depth: int) -> Any:
    """Return decoded JSON by the same rules: no null members, whole floats as ints."""
    if depth > _MAX_DEPTH:
        raise YamlError(1, "the value is nested too deeply")
    if isinstance(value, dict):
        return {key: _plain_json(member, depth + 1) for key, member in value.items() if member is not None}
    if isinstance(value, list):
        return [_plain_json(item, depth + 1) for item in value]
    return _whole(value) if isinstance(value, float) else value


def _whole(number: float) -> int | float:
    return int(number) if number.is_integer() and abs(number) < 1e21 else number


class _Builder:
    """Turns the nodes of the documents of one text into JSON values."""

    def __init__(self, most: int, *, last_key_wins: bool) -> None:
        self._left, self._last_key_wins = most, last_key_wins

    def value(self, node: yaml.Node, depth: int) -> Any:
        self._left -= 1
        if depth > _MAX_DEPTH or self._left < 0:
            raise YamlError(node.start_mark.line + 1, "the value is nested too deeply or too large")
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, depth)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, depth + 1) for item in node.value]
        assert isinstance(node, yaml.ScalarNode)
        return _scalar(node)

    def _mapping(self, node: yaml.MappingNode, depth: int) -> dict[str, Any]:
        members: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        seen: set[str] = set()
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                raise YamlError(line, "a key must be a text")
            value = self.value(value_node, depth + 1)
            if key_node.value == "<<" and not key_node.style:
                for part in value if isinstance(value, list) else [value]:
                    if not isinstance(part, dict):
                        raise YamlError(line, "<< merges maps only")
                    merged = {**part, **merged}
                continue
            key = _key(key_node)
            if key in seen and not self._last_key_wins:
                raise YamlError(line, f'key "{key}" is given twice in one map')
            seen.add(key)
            members.pop(key, None)
            if value is not None:
                members[key] = value
        return {**merged, **members} if merged else members


def _key(node: yaml.ScalarNode) -> str:
    value = _scalar(node)
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else str(value)


def _scalar(node: yaml.ScalarNode) -> Any:
    text: str = node.value
    line = node.start_mark.line + 1
    if node.style:  # quoted, or a block
        return text
    if node.tag != _PLAIN:  # a written tag such as !!str
        return text
    return _resolved(text, line)


def _resolved(text: str, line: int) -> Any:
    """Return what a plain scalar means."""
    if text in _NULL:
        return None
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    if _INT.fullmatch(text):
        if len(text) > _LONGEST_NUMBER:
            raise YamlError(line, f"{text[:20]}... is too large for a number; put it in quotes")
        return _integer(text)
    if _FLOAT.fullmatch(text):
        number = float(text)
        if not math.isfinite(number):
            raise YamlError(line, f"{text} is too large for a number; put it in quotes")
        return _whole(number)
    if text.lower().lstrip("+-") in {".inf", ".nan"}:
        raise YamlError(line, f"{text} is not a finite number; write a number")
    return text


def reads_as_text(text: str) -> bool:
    """Return whether a plain scalar of these characters is a text; one that is not must be quoted to be one."""
    try:
        return isinstance(_resolved(text, 0), str)
    except YamlError:
        return False


def _integer(text: str) -> int:
    sign = -1 if text[0] == "-" else 1
    digits = text.lstrip("+-").replace("_", "")
    if digits[:2] in {"0b", "0x", "0o"}:
        return sign * int(digits, 0)
    return sign * int(digits, 8 if digits[0] == "0" and len(digits) > 1 else 10)

"""Configuration files of cloud providers: INI as Git writes it.

Sections are ``[name]`` or ``[name "part"]``; keys are case-insensitive; ``#`` and ``;`` begin comments; a key
without a value means true. Source: gopkg.in/gcfg.v1, which upstream's providers read ``--cloud-config`` with.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from kubetide.ports.errors import KubetideError

_SECTION: Final = re.compile(
    r'\[\s*([A-Za-z][A-Za-z0-9-]*)\s*(?:"((?:[^"\\]|\\["\\])*)"\s*)?\]\s*(.*)', re.DOTALL
)
_KEY: Final = re.compile(r"([A-Za-z][A-Za-z0-9-]*)\s*(?:=\s*(.*))?", re.DOTALL)
_ESCAPES: Final = {'"': '"', "\\": "\\", "n": "\n", "t": "\t", "b": "\b"}


class CloudConfigError(KubetideError):
    """A provider's configuration that cannot be used; the text names the place and the fix."""


class Entry(NamedTuple):
    """A key of a section; ``value`` is None for a key without ``=``, ``key`` empty for the section itself."""

    section: str
    part: str | None
    key: str
    value: str | None
    line: int


def read_ini(text: str) -> list[Entry]:
    """Return all entries in order, section names and keys in lower case. Raises CloudConfigError."""
    entries: list[Entry] = []
    section: tuple[str, str | None] | None = None
    for number, line in _logical_lines(text):
        found = _SECTION.fullmatch(line)
        if found:
            part = found[2]
            section = (found[1].lower(), None if part is None else re.sub(r"\\(.)", r"\1", part))
            entries.append(Entry(*section, "", None, number))
            line = found[3]  # noqa: PLW2901  # a key may stand behind its section
            if not line or line[0] in "#;":
                continue
        key = _KEY.fullmatch(line)
        if not key or section is None:
            raise CloudConfigError(f"line {number}: {line!r} is neither a section nor a key of one")
        value = None if key[2] is None else _value(key[2], number)
        entries.append(Entry(*section, key[1].lower(), value, number))
    return entries


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    held, start = "", 0
    for number, raw in enumerate(text.lstrip("\ufeff").splitlines(), 1):
        line = raw.strip() if not held else raw.rstrip()
        if not held:
            start = number
            if not line or line[0] in "#;":
                continue
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2:
            held += line[:-1]
            continue
        yield start, held + line
        held = ""
    if held:
        raise CloudConfigError(f"line {start}: the last line ends in a backslash")


def _value(text: str, number: int) -> str:
    value, end, quoted, at = "", 0, False, 0
    while at < len(text):
        char = text[at]
        if char == '"':
            quoted = not quoted
            end = len(value)
        elif char == "\\":
            at += 1
            if at >= len(text) or text[at] not in _ESCAPES:
                raise CloudConfigError(f"line {number}: unknown escape in {text!r}")
            value += _ESCAPES[text[at]]
            end = len(value)
        elif char in "#;" and not quoted:
            break
        else:
            value += char
            if quoted or not char.isspace():
                end = len(value)
        at += 1
    if quoted:
        raise CloudConfigError(f"line {number}: a quote is not closed in {text!r}")
    return value[:end]

"""What is wrong with a text that is no JSON, in the words of Go's parser, which clients know.

Asked only about texts that could not be read. Source: Go's encoding/json (scanner) as
sigs.k8s.io/json v1.36 uses it.
"""

from __future__ import annotations

import re

_END = "unexpected end of JSON input"
_DEEPEST = 10_000
_SPACE = re.compile(rb"[ \t\r\n]*")
_NUMBER = re.compile(rb"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_WORDS = (b"true", b"false", b"null")
_ESCAPED = b'"\\/bfnrtu'
_HEX = b"0123456789abcdefABCDEF"
_SHOWN = 30


def fault_in(text: bytes) -> str:
    """Return the first fault of the text, empty for a text that is JSON."""
    try:
        end = _skip(text, _value(text, _skip(text, 0)))
        if end < len(text):
            raise _unexpected(text, end, "after top-level value")
    except _Fault as fault:
        return str(fault)
    return ""


def excerpt(text: bytes) -> str:
    """Return the beginning of a text as error messages show it: what is no object as hexadecimal digits."""
    if not text:
        return "<empty>"
    if not text.startswith(b"{"):
        return text[: _SHOWN * 16].hex()
    start = text[:_SHOWN].decode(errors="replace")
    return f"{start} ..." if len(text) > _SHOWN else start


class _Fault(Exception):
    """The text ends here, or goes on with something else."""


def _unexpected(text: bytes, at: int, where: str) -> _Fault:
    if at >= len(text):
        return _Fault(_END)
    byte = text[at]
    shown = {0x27: "\\'", 0x22: '"', 0x5C: "\\\\", 0x0A: "\\n", 0x0D: "\\r", 0x09: "\\t"}.get(byte)
    if shown is None:
        shown = chr(byte) if 0x20 <= byte < 0x7F else f"\\x{byte:02x}" if byte < 0x80 else f"\\u{byte:04x}"
    return _Fault(f"invalid character '{shown}' {where}")


def _skip(text: bytes, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _value(text: bytes, at: int) -> int:
    """Read one value and return where it ends; with a stack of its own, so that no depth is too much."""
    open_: list[int] = []
    while True:
        at, opened = _begin(text, at, open_)
        if opened:
            continue
        while open_:
            at = _skip(text, at)
            closing = b"}" if open_[-1] == 0x7B else b"]"
            if text[at : at + 1] == b",":
                at = _skip(text, at + 1)
                if closing == b"}":
                    at = _key(text, at)
                break
            if text[at : at + 1] != closing:
                where = "after object key:value pair" if closing == b"}" else "after array element"
                raise _unexpected(text, at, where)
            open_.pop()
            at += 1
        else:
            return at


def _begin(text: bytes, at: int, open_: list[int]) -> tuple[int, bool]:
    """Read a scalar or an empty container, or goes into a container that is not empty."""
    first = text[at : at + 1]
    if first in {b"{", b"["} and first:
        if len(open_) >= _DEEPEST:
            raise _unexpected(text, at, "exceeded max depth")
        inner = _skip(text, at + 1)
        if text[inner : inner + 1] == (b"}" if first == b"{" else b"]"):
            return inner + 1, False
        open_.append(first[0])
        if first == b"{":
            inner = _key(text, inner)
        return inner, True
    if first == b'"':
        return _string(text, at), False
    number = _NUMBER.match(text, at)
    if number:
        return number.end(), False
    for word in _WORDS:
        if first == word[:1]:
            return _word(text, at, word), False
    if first == b"-":
        raise _unexpected(text, at + 1, "in numeric literal")
    raise _unexpected(text, at, "looking for beginning of value")


def _word(text: bytes, at: int, word: bytes) -> int:
    for index, byte in enumerate(word):
        if text[at + index : at + index + 1] != bytes((byte,)):
            where = f"in literal {word.decode()} (expecting '{chr(byte)}')"
            raise _unexpected(text, at + index, where)
    return at + len(word)


def _key(text: bytes, at: int) -> int:
    """Read a key and its colon, and return where its value begins."""
    if text[at : at + 1] != b'"':
        raise _unexpected(text, at, "looking for beginning of object key string")
    at = _skip(text, _string(text, at))
    if text[at : at + 1] != b":":
        raise _unexpected(text, at, "after object key")
    return _skip(text, at + 1)


def _string(text: bytes, at: int) -> int:
    at += 1
    while at < len(text):
        byte = text[at]
        if byte == 0x22:
            return at + 1
        if byte < 0x20:
            raise _unexpected(text, at, "in string literal")
        at += 1
        if byte != 0x5C:
            continue
        if at < len(text) and text[at] not in _ESCAPED:
            raise _unexpected(text, at, "in string escape code")
        if text[at : at + 1] == b"u":
            for _ in range(4):
                at += 1
                if at >= len(text) or text[at] not in _HEX:
                    raise _unexpected(text, at, "in \\u hexadecimal character escape")
        at += 1
    raise _Fault(_END)

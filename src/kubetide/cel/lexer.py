"""CEL's tokens. Source: the CEL language definition, and cel-go's grammar for what it refuses."""

from __future__ import annotations

import re
from typing import NamedTuple

from kubetide.cel.syntax import Issue

END = "<EOF>"

_ESCAPES = r"\\(?:[abfnrtv\"'\\?`]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7]{2})"
_QUOTED = "|".join(
    (
        rf'"""(?:{_ESCAPES}|[^\\])*?"""',
        rf"'''(?:{_ESCAPES}|[^\\])*?'''",
        rf'"(?:{_ESCAPES}|[^\\"\n\r])*"',
        rf"'(?:{_ESCAPES}|[^\\'\n\r])*'",
        r'[rR]""".*?"""',
        r"[rR]'''.*?'''",
        r'[rR]"[^"\n\r]*"',
        r"[rR]'[^'\n\r]*'",
    )
)
_TOKENS = re.compile(
    rf"""
    (?P<space>[\t\ \r\n\f]+|//[^\n]*)
    |(?P<float>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)
    |(?P<uint>(?:0x[0-9a-fA-F]+|[0-9]+)[uU])
    |(?P<int>0x[0-9a-fA-F]+|[0-9]+)
    |(?P<bytes>[bB](?:{_QUOTED}))
    |(?P<string>{_QUOTED})
    |(?P<name>[_a-zA-Z][_a-zA-Z0-9]*)
    |(?P<escaped>`[a-zA-Z0-9_.\-/\ ]+`)
    |(?P<mark>==|!=|<=|>=|&&|\|\||[-+*/%<>!?:.,()\[\]{{}}])
    """,
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_WORDS = frozenset({"true", "false", "null", "in"})
_ESCAPE = re.compile(_ESCAPES)
_SIMPLE = {"a": 7, "b": 8, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}


class Token(NamedTuple):
    """A token: ``kind`` is a mark or word itself, or the class of names and literals."""

    kind: str
    text: str
    position: int


def tokenize(text: str) -> tuple[list[Token], list[Issue]]:
    """Return the tokens, with one for the end, and what could not be read."""
    tokens: list[Token] = []
    issues: list[Issue] = []
    at = 0
    while at < len(text):
        match = _TOKENS.match(text, at)
        if match is None:
            end = _unread(text, at)
            issues.append(Issue(at, f"Syntax error: token recognition error at: '{text[at:end]}'"))
            at = end
            continue
        kind, found = str(match.lastgroup), match.group()
        if kind != "space":
            named = kind == "mark" or (kind == "name" and found in _WORDS)
            tokens.append(Token(found if named else kind, found, at))
        at = match.end()
    tokens.append(Token(END, END, len(text)))
    return tokens, issues


def _unread(text: str, at: int) -> int:
    """Return where a piece ends that is no token: a text without its end, or one character and what follows it."""
    if text[at] in "\"'":
        quote = text[at]
        end = at + 1
        while end < len(text) and text[end] not in (quote, "\n", "\r"):
            if text[end] == "\\":
                escape = _ESCAPE.match(text, end)
                if escape is None:
                    return min(end + 2, len(text))
                end = escape.end()
                continue
            end += 1
        return end
    if text[at] in "=&|":
        return min(at + 2, len(text))
    return at + 1


def unquote(literal: str, *, as_bytes: bool) -> str | bytes:
    """Read a text or bytes literal. Raises ValueError for an escape that means no character."""
    body = literal[1:] if as_bytes else literal
    raw = body[0] in "rR"
    if raw:
        body = body[1:]
    width = 3 if body[:3] in ('"""', "'''") else 1
    body = body[width:-width].replace("\r\n", "\n").replace("\r", "\n")
    if raw or "\\" not in body:
        return body.encode() if as_bytes else body
    pieces: list[bytes] = []
    at = 0
    for match in _ESCAPE.finditer(body):
        pieces.append(body[at : match.start()].encode())
        code, wide = _code(match.group()[1:])
        if as_bytes and wide:
            raise ValueError("bytes have no characters beyond one byte")
        if as_bytes:
            pieces.append(bytes([code]))
        else:
            if 0xD800 <= code < 0xE000:
                raise ValueError("surrogates are no characters")
            pieces.append(chr(code).encode())
        at = match.end()
    pieces.append(body[at:].encode())
    whole = b"".join(pieces)
    return whole if as_bytes else whole.decode()


def _code(escape: str) -> tuple[int, bool]:
    """The number behind an escape, and whether it is a character also in bytes."""
    head = escape[0]
    if head in "xX":
        return int(escape[1:], 16), False
    if head in "uU":
        return int(escape[1:], 16), True
    if head.isdigit():
        return int(escape, 8), False
    return _SIMPLE.get(head, ord(head)), False

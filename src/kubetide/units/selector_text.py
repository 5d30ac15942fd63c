"""The grammar of a label selector's text: a lexer, a parser, and the messages that users know.

Source: apimachinery v1.36, pkg/labels; the messages are under test.
"""

from __future__ import annotations

import json
import re

import msgspec

from kubetide.units.names import label_key_errors, label_value_errors

_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_SPACE = " \t\r\n"
_SYMBOL = "=!(),><"
_SYMBOL_TOKENS = frozenset({")", ",", "!", "==", "=", ">", "<", "!=", "("})
_OPERATORS = {"in": "in", "notin": "notin", "=": "=", "==": "==", "!=": "!=", ">": "gt", "<": "lt"}

_WORD_KIND = "word"
_END = "end"


class SelectorTextError(ValueError):
    """What is wrong with a selector's text."""


Term = tuple[str, str, tuple[str, ...]]
"""Key, operator as in ``selectors.Requirement``, values sorted and each once."""


class _Token(msgspec.Struct, frozen=True):
    kind: str  # "word", "end", "bad", "in", "notin", or the symbol itself
    text: str


def parse_terms(text: str) -> list[Term]:
    """Read the terms in the order they are written.

    Raises: SelectorTextError, worded as upstream words it.
    """
    return _Parser(_tokens(text)).terms()


def term_problem(key: str, operator: str, values: tuple[str, ...]) -> str | None:
    """Return what makes a requirement invalid, as upstream words it, or None."""
    found = []
    key_errors = label_key_errors(key)
    if key_errors:
        found.append(f"key: Invalid value: {_quote(key)}: {'; '.join(key_errors)}")
    if operator in {"in", "notin"} and not values:
        found.append("values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty")
    elif operator in {"exists", "!"} and values:
        shown = json.dumps(list(values), ensure_ascii=False, separators=(",", ":"))
        found.append(
            f"values: Invalid value: {shown}: values set must be empty for exists and does not exist"
        )
    elif operator in {"gt", "lt"} and parse_int64(values[0]) is None:
        detail = "for 'Gt', 'Lt' operators, the value must be an integer"
        found.append(f"values[0]: Invalid value: {_quote(values[0])}: {detail}")
    for index, value in enumerate(values):
        value_errors = label_value_errors(value)
        if value_errors:
            found.append(f"values[{index}][{key}]: Invalid value: {_quote(value)}: {'; '.join(value_errors)}")
    if not found:
        return None
    return found[0] if len(found) == 1 else f"[{', '.join(found)}]"


def parse_int64(text: str | None) -> int | None:
    """Return the number, or None where the text is none that an int64 holds."""
    if text is None or len(text) > 40 or not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if -(1 << 63) <= number < 1 << 63 else None


def _tokens(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    position = 0
    while True:
        while position < len(text) and text[position] in _SPACE:
            position += 1
        if position >= len(text) or text[position] == "\0":
            tokens.append(_Token(_END, ""))
            return tokens
        if text[position] in _SYMBOL:
            token, position = _symbol(text, position)
        else:
            end = position
            while (
                end < len(text) and text[end] not in _SPACE and text[end] not in _SYMBOL and text[end] != "\0"
            ):
                end += 1
            word = text[position:end]
            token, position = _Token(word if word in {"in", "notin"} else _WORD_KIND, word), end
        tokens.append(token)


def _symbol(text: str, position: int) -> tuple[_Token, int]:
    """Read the longest operator from a run of symbols: ``!=`` before ``!``."""
    # No prefix of a known symbol is unknown, so growing by one character finds the longest.
    end = position + 1
    if text[position : end + 1] in _SYMBOL_TOKENS:
        end += 1
    return _Token(text[position:end], text[position:end]), end


class _Parser:
    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._position = 0

    def _peek(self) -> _Token:
        """The next token where a word is expected: there ``in`` and ``notin`` are words."""
        token = self._tokens[self._position]
        return _Token(_WORD_KIND, token.text) if token.kind in {"in", "notin"} else token

    def _take(self) -> _Token:
        token = self._peek()
        self._position += 1
        return token

    def terms(self) -> list[Term]:
        terms: list[Term] = []
        while True:
            token = self._peek()
            if token.kind == _END:
                return terms
            if token.kind not in {_WORD_KIND, "!"}:
                raise SelectorTextError(f"found '{token.text}', expected: !, identifier, or 'end of string'")
            try:
                terms.append(self._term())
            except SelectorTextError as exc:
                raise SelectorTextError(f"unable to parse requirement: {exc}") from None
            token = self._take()
            if token.kind == _END:
                return terms
            if token.kind != ",":
                raise SelectorTextError(f"found '{token.text}', expected: ',' or 'end of string'")
            token = self._peek()
            if token.kind not in {_WORD_KIND, "!"}:
                raise SelectorTextError(f"found '{token.text}', expected: identifier after ','")

    def _term(self) -> Term:
        token = self._take()
        negated = token.kind == "!"
        if negated:
            token = self._take()
        if token.kind != _WORD_KIND:
            raise SelectorTextError(f"found '{token.text}', expected: identifier")
        key = token.text
        errors = label_key_errors(key)
        if errors:
            raise SelectorTextError(f"<nil>: Invalid value: {_quote(key)}: {'; '.join(errors)}")
        if negated:
            return key, "!", ()
        if self._peek().kind in {_END, ","}:
            return key, "exists", ()
        token = self._tokens[self._position]
        self._position += 1
        operator = _OPERATORS.get(token.kind)
        if operator is None:
            raise SelectorTextError(f"found '{token.text}', expected: in, notin, =, ==, !=, gt, lt")
        values = self._list() if operator in {"in", "notin"} else (self._one(),)
        problem = term_problem(key, operator, values)
        if problem:
            raise SelectorTextError(problem)
        return key, operator, values

    def _one(self) -> str:
        if self._peek().kind in {_END, ","}:
            return ""
        token = self._take()
        if token.kind != _WORD_KIND:
            raise SelectorTextError(f"found '{token.text}', expected: identifier")
        return token.text

    def _list(self) -> tuple[str, ...]:
        token = self._take()
        if token.kind != "(":
            raise SelectorTextError(f"found '{token.text}' expected: '('")
        token = self._peek()
        if token.kind == ")":
            self._take()
            return ("",)
        if token.kind not in {_WORD_KIND, ","}:
            raise SelectorTextError(f"found '{token.text}', expected: ',', ')' or identifier")
        values = self._items()
        self._take()
        return tuple(sorted(set(values)))

    def _items(self) -> list[str]:
        """Read up to the closing parenthesis; an empty place between commas is the empty value."""
        values: list[str] = []
        while True:
            token = self._take()
            following = self._peek() if token.kind in {_WORD_KIND, ","} else token
            if token.kind == _WORD_KIND:
                values.append(token.text)
                if following.kind == ")":
                    return values
                if following.kind != ",":
                    raise SelectorTextError(f"found '{following.text}', expected: ',' or ')'")
            elif token.kind == ",":
                if not values:
                    values.append("")
                if following.kind == ")":
                    values.append("")
                    return values
                if following.kind == ",":
                    self._take()
                    values.append("")
            else:
                raise SelectorTextError(f"found '{token.text}', expected: ',', or identifier")


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)

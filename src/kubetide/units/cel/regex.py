r"""Regular expressions of RE2's syntax, matched in time linear in the text.

Selectors come from users: a backtracking matcher could be made to run for years. A pattern becomes a
program whose threads all advance by one character at a time, the preferred ones first. Not here:
Unicode classes (``\pL``), which are refused, and captures, which nothing in CEL asks for.

Source: RE2's syntax; R. Cox, "Regular Expression Matching: the Virtual Machine Approach" (2009).
"""

from __future__ import annotations

from functools import lru_cache

from kubetide.units.cel.regex_program import Accepts, Holds, Pattern, Step
from kubetide.units.cel.values import EvaluationError

MAX_REPEAT = 1000
MAX_PROGRAM = 20_000
_MAX_NESTING = 100


@lru_cache(maxsize=256)
def compile_pattern(pattern: str) -> Pattern:
    """Compiles a pattern. Raises EvaluationError in the words of Go's regexp package."""
    reader = _Reader(pattern)
    reader.alternatives()
    if reader.at < len(pattern):
        raise _error("unexpected )", pattern)
    return Pattern([*reader.steps, Step()])


def _error(problem: str, text: str) -> EvaluationError:
    return EvaluationError(f"error parsing regexp: {problem}: `{text}`")


def _is_word(c: str) -> bool:
    return c.isascii() and (c.isalnum() or c == "_")


_CLASSES: dict[str, Accepts] = {
    "d": lambda c: "0" <= c <= "9",
    "w": _is_word,
    "s": lambda c: c in "\t\n\f\r ",
}
_NAMED: dict[str, Accepts] = {
    "alnum": lambda c: c.isascii() and c.isalnum(),
    "alpha": lambda c: c.isascii() and c.isalpha(),
    "ascii": lambda c: c.isascii(),
    "blank": lambda c: c in "\t ",
    "cntrl": lambda c: c < " " or c == "\x7f",
    "digit": lambda c: "0" <= c <= "9",
    "graph": lambda c: "!" <= c <= "~",
    "lower": lambda c: "a" <= c <= "z",
    "print": lambda c: " " <= c <= "~",
    "punct": lambda c: "!" <= c <= "~" and not c.isalnum(),
    "space": lambda c: c in "\t\n\v\f\r ",
    "upper": lambda c: "A" <= c <= "Z",
    "word": _is_word,
    "xdigit": lambda c: c in "0123456789abcdefABCDEF",
}
_ESCAPES = {"a": "\a", "f": "\f", "t": "\t", "n": "\n", "r": "\r", "v": "\v"}


def _at_word_edge(text: str, at: int) -> bool:
    before = at > 0 and _is_word(text[at - 1])
    return before != (at < len(text) and _is_word(text[at]))


class _Reader:
    """Reads a pattern from left to right and writes its program."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.at = 0
        self.steps: list[Step] = []
        self._flags = ""
        self._depth = 0

    def alternatives(self) -> None:
        self._depth += 1
        if self._depth > _MAX_NESTING:
            raise _error("expression nests too deeply", self.pattern)
        start = len(self.steps)
        flags = self._flags
        ends: list[int] = []
        self._sequence()
        while self._peek() == "|":
            self.at += 1
            # The branch so far moves one down, behind the choice; its end jumps past what follows.
            branch = self._cut(start)
            self._write(Step(targets=(start + 1, start + len(branch) + 2)))
            self._paste(branch, start + 1)
            ends.append(len(self.steps))
            self._write(Step())
            start = len(self.steps)
            self._sequence()
        for end in ends:
            self.steps[end] = Step(targets=(len(self.steps),))
        self._flags = flags
        self._depth -= 1

    def _sequence(self) -> None:
        while self.at < len(self.pattern) and self._peek() not in "|)":
            start = len(self.steps)
            if self._atom():
                self._repeats(start)

    def _repeats(self, start: int) -> None:
        mark = self.at
        counts = self._count()
        if counts is None:
            return
        lazy = self._peek() == "?"
        self.at += lazy
        if self._count() is not None:
            raise _error("invalid nested repetition operator", self.pattern[mark : self.at])
        least, most = counts
        body = self._cut(start)
        size = len(body) * (max(least, most or 0) + 1)
        if max(least, most or 0) > MAX_REPEAT or len(self.steps) + size > MAX_PROGRAM:
            raise _error("invalid repeat count", self.pattern[mark : self.at])
        for _ in range(least):
            self._paste(body, len(self.steps))
        if most is None:
            here = len(self.steps)
            self._write(self._choice(here + 1, here + len(body) + 2, lazy=lazy))
            self._paste(body, here + 1)
            self._write(Step(targets=(here,)))
            return
        end = len(self.steps) + (most - least) * (len(body) + 1)
        for _ in range(most - least):
            self._write(self._choice(len(self.steps) + 1, end, lazy=lazy))
            self._paste(body, len(self.steps))

    def _choice(self, go_on: int, leave: int, *, lazy: bool) -> Step:
        return Step(targets=(leave, go_on) if lazy else (go_on, leave))

    def _count(self) -> tuple[int, int | None] | None:
        """Reads a repetition; None when there is none here."""
        sign = self._peek()
        if sign in {"*", "+", "?"}:
            self.at += 1
            return {"*": (0, None), "+": (1, None), "?": (0, 1)}[sign]
        if sign != "{":
            return None
        end = self.pattern.find("}", self.at)
        least, comma, most = self.pattern[self.at + 1 : max(end, self.at + 1)].partition(",")
        if end < 0 or not _is_number(least) or (most and not _is_number(most)):
            return None
        counts = (int(least), int(most) if most else None if comma else int(least))
        if counts[1] is not None and counts[0] > counts[1]:
            raise _error("invalid repeat count", self.pattern[self.at : end + 1])
        self.at = end + 1
        return counts

    # ── Atoms ──

    def _atom(self) -> bool:
        """Reads one thing that may be repeated; False for flags alone."""
        c = self.pattern[self.at]
        self.at += 1
        match c:
            case "(":
                return self._group()
            case "[":
                self._read(self._class())
            case ".":
                everything = "s" in self._flags
                self._read(lambda one: everything or one != "\n")
            case "^":
                lines = "m" in self._flags
                self._hold(lambda text, at: at == 0 or (lines and text[at - 1] == "\n"))
            case "$":
                lines = "m" in self._flags
                self._hold(lambda text, at: at == len(text) or (lines and text[at] == "\n"))
            case "\\":
                self._escape()
            case "*" | "+" | "?":
                raise _error("missing argument to repetition operator", c)
            case _:
                self._literal(c)
        return True

    def _group(self) -> bool:
        flags = self._flags
        if self._peek() == "?":
            end = min(
                (
                    one
                    for one in (self.pattern.find(")", self.at), self.pattern.find(":", self.at))
                    if one > 0
                ),
                default=-1,
            )
            head = self.pattern[self.at + 1 : end] if end > 0 else ""
            if self.pattern.startswith(("?P<", "?<"), self.at):
                closing = self.pattern.find(">", self.at)
                name = self.pattern[self.at : closing + 1] if closing > 0 else self.pattern[self.at :]
                if closing < 0 or not name.split("<")[1][:-1].isidentifier():
                    raise _error("invalid named capture", "(" + name)
                self.at = closing + 1
            elif end > 0 and all(one in "imsU-" for one in head):
                on, _, off = head.partition("-")
                self._flags = "".join(one for one in self._flags + on if one not in off)
                self.at = end + 1
                if self.pattern[end] == ")":
                    return False
            else:
                raise _error("invalid or unsupported Perl syntax", self.pattern[self.at - 1 : self.at + 2])
        self.alternatives()
        if self._peek() != ")":
            raise _error("missing closing )", self.pattern)
        self.at += 1
        self._flags = flags
        return True

    def _escape(self) -> None:
        c = self._peek()
        self.at += 1
        if not c:
            raise _error("trailing backslash at end of expression", "")
        if c in _CLASSES:
            self._read(_CLASSES[c])
        elif c in "DWS":
            negated = _CLASSES[c.lower()]
            self._read(lambda one: not negated(one))
        elif c == "A":
            self._hold(lambda _, at: at == 0)
        elif c == "z":
            self._hold(lambda text, at: at == len(text))
        elif c == "b":
            self._hold(_at_word_edge)
        elif c == "B":
            self._hold(lambda text, at: not _at_word_edge(text, at))
        elif c == "Q":
            end = self.pattern.find("\\E", self.at)
            quoted = self.pattern[self.at : end] if end >= 0 else self.pattern[self.at :]
            self.at = end + 2 if end >= 0 else len(self.pattern)
            for one in quoted:
                self._literal(one)
        else:
            self.at -= 1
            self._literal(self._escaped())

    def _escaped(self) -> str:
        """Reads what stands behind a backslash and means one character."""
        c = self._peek()
        self.at += 1
        if c in _ESCAPES:
            return _ESCAPES[c]
        if c == "x":
            digits = self.pattern[self.at : self.at + 2]
            if self._peek() == "{":
                end = self.pattern.find("}", self.at)
                digits = self.pattern[self.at + 1 : end] if end > 0 else ""
                self.at = end + 1 if end > 0 else self.at
            else:
                self.at += 2
            try:
                return chr(int(digits, 16))
            except (ValueError, OverflowError):
                raise _error("invalid escape sequence", "\\x") from None
        if c.isascii() and not c.isalnum():
            return c
        raise _error("invalid escape sequence", "\\" + c)

    def _class(self) -> Accepts:
        begin = self.at - 1
        negated = self._peek() == "^"
        self.at += negated
        singles: list[Accepts] = []
        ranges: list[tuple[str, str]] = []
        first = True
        while first or self._peek() != "]":
            if self.at >= len(self.pattern):
                raise _error("missing closing ]", self.pattern[begin:])
            first = False
            special = self._class_member()
            if special is not None:
                singles.append(special)
                continue
            low = self._class_char()
            high = low
            if self._peek() == "-" and self.pattern[self.at + 1 : self.at + 2] not in {"]", ""}:
                dash = self.at
                self.at += 1
                high = self._class_char()
                if high < low:
                    raise _error("invalid character class range", f"{low}{self.pattern[dash : self.at]}")
            ranges.append((low, high))
        self.at += 1
        folds = "i" in self._flags

        def accepts(c: str) -> bool:
            forms = {c, c.lower(), c.upper()} if folds else {c}
            found = any(low <= one <= high for one in forms for low, high in ranges) or any(
                one(form) for form in forms for one in singles
            )
            return found != negated

        return accepts

    def _class_member(self) -> Accepts | None:
        """Reads a class within a class; None when a character stands here."""
        if self.pattern.startswith("[:", self.at):
            end = self.pattern.find(":]", self.at)
            name = self.pattern[self.at + 2 : end] if end > 0 else ""
            inverted = name.startswith("^")
            found = _NAMED.get(name.removeprefix("^"))
            if found is None:
                raise _error("invalid character class range", self.pattern[self.at : end + 2])
            self.at = end + 2
            return (lambda c: not found(c)) if inverted else found
        if self._peek() == "\\":
            letter = self.pattern[self.at + 1 : self.at + 2]
            known = _CLASSES.get(letter.lower()) if letter in set("dwsDWS") else None
            if known is not None:
                self.at += 2
                return (lambda c: not known(c)) if letter.isupper() else known
        return None

    def _class_char(self) -> str:
        c = self._peek()
        self.at += 1
        if c == "\\":
            return self._escaped()
        if not c:
            raise _error("missing closing ]", self.pattern)
        return c

    # ── Program ──

    def _peek(self) -> str:
        return self.pattern[self.at : self.at + 1]

    def _write(self, step: Step) -> None:
        if len(self.steps) >= MAX_PROGRAM:
            raise _error("expression too large", self.pattern)
        self.steps.append(step)

    def _read(self, accepts: Accepts) -> None:
        self._write(Step(accepts=accepts))

    def _hold(self, holds: Holds) -> None:
        self._write(Step(holds=holds))

    def _literal(self, c: str) -> None:
        if "i" in self._flags:
            forms = frozenset({c, c.lower(), c.upper()})
            self._read(forms.__contains__)
        else:
            self._read(c.__eq__)

    def _cut(self, start: int) -> list[Step]:
        """Takes the steps from ``start`` on out, with targets counted from there."""
        body = [
            step._replace(targets=tuple(one - start for one in step.targets)) for step in self.steps[start:]
        ]
        del self.steps[start:]
        return body

    def _paste(self, body: list[Step], start: int) -> None:
        for step in body:
            self._write(step._replace(targets=tuple(one + start for one in step.targets)))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 6

"""Reads an expression into its syntax tree; macros are expanded here.

Source: the CEL language definition and cel-go's grammar; the words of the commonest syntax errors
are its parser generator's, in rarer ones the words differ.
"""

from __future__ import annotations

from kubetide.cel.lexer import END, Token, tokenize, unquote
from kubetide.cel.macros import expand_function, expand_method
from kubetide.cel.syntax import (
    FAILED,
    Call,
    CelError,
    Issue,
    ListOf,
    Literal,
    Logic,
    MapOf,
    Name,
    Node,
    Select,
    describe,
    height,
)
from kubetide.cel.values import MAX_INT64, Uint

MAX_NESTING = 50
"""Brackets within brackets; cel-go's own limit on recursion is 250."""

MAX_DEPTH = 150
"""Height of the tree: longer chains of + or of selections are refused in the words of that limit."""

_TOO_DEEP = "expression recursion limit exceeded: 250"
_OPERANDS = "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}"
_RELATIONS = ("<", "<=", ">=", ">", "==", "!=", "in")
_LEVELS = (_RELATIONS, ("+", "-"), ("*", "/", "%"))
_OPERATORS = {"in": "@in"}
_RESERVED = frozenset(
    [
        "as",
        "break",
        "const",
        "continue",
        "else",
        "false",
        "for",
        "function",
        "if",
        "import",
        "in",
        "let",
        "loop",
        "package",
        "namespace",
        "null",
        "return",
        "true",
        "var",
        "void",
        "while",
    ]
)


_AFTER = {
    "(": _OPERANDS.replace("'(', '.'", "'(', ')', '.'"),
    "[": _OPERANDS.replace("'!', 'true'", "'!', '?', 'true'"),
    "{": "{'[', '{', '}', '(', '.', ',', '-', '!', '?'" + _OPERANDS[_OPERANDS.index(", 'true'") :],
}
"""What else may stand behind an opening bracket."""


def _begins_operand(token: Token) -> bool:
    return token.kind in {"[", "{", "(", ".", "-", "!", "true", "false", "null"} or token.kind in {
        "float",
        "int",
        "uint",
        "string",
        "bytes",
        "name",
    }


def parse(text: str) -> Node:
    """Read an expression. Raises CelError with all that is wrong, as cel-go prints it."""
    tokens, issues = tokenize(text)
    parser = _Parser(tokens, issues)
    node: Node | None = None
    try:
        node = parser.expression()
        parser.end()
        if height(node) > MAX_DEPTH:
            issues.append(Issue(0, _TOO_DEEP))
    except _StopError:
        pass
    if issues or node is None:
        raise CelError(FAILED + describe(text, sorted(issues, key=lambda issue: issue.position)))
    return node


class _StopError(Exception):
    """Reading cannot go on; the issue is noted."""


class _Parser:
    def __init__(self, tokens: list[Token], issues: list[Issue]) -> None:
        self._tokens = tokens
        self._at = 0
        self._issues = issues
        self._nesting = 0

    # ── Grammar ──

    def expression(self) -> Node:
        self._nesting += 1
        if self._nesting > MAX_NESTING:
            self._stop(0, _TOO_DEEP)
        node = self._conditional()
        self._nesting -= 1
        return node

    def end(self) -> None:
        token = self._peek()
        if token.kind != END:
            rest = self._tokens[self._at + 1].kind == END
            verb = "extraneous" if rest else "mismatched"
            self._stop(token.position, f"Syntax error: {verb} input '{token.text}' expecting <EOF>")

    def _conditional(self) -> Node:
        node = self._logic(every=False)
        if self._peek().kind != "?":
            return node
        mark = self._next()
        yes = self._logic(every=False)
        self._expect(":")
        return Call(mark.position, "_?_:_", None, (node, yes, self.expression()))

    def _logic(self, *, every: bool) -> Node:
        mark = "&&" if every else "||"
        terms: list[Node] = []
        position = 0
        while True:
            terms.append(self._binary(0) if every else self._logic(every=True))
            if self._peek().kind != mark:
                break
            position = self._next().position
        return terms[0] if len(terms) == 1 else Logic(position, every, tuple(terms))

    def _binary(self, level: int) -> Node:
        if level == len(_LEVELS):
            return self._unary()
        node = self._binary(level + 1)
        while self._peek().kind in _LEVELS[level]:
            token = self._next()
            right = self._binary(level + 1)
            function = _OPERATORS.get(token.text, f"_{token.text}_")
            node = Call(token.position, function, None, (node, right))
        return node

    def _unary(self) -> Node:
        token = self._peek()
        if token.kind not in {"!", "-"}:
            return self._member()
        number = self._tokens[self._at + 1]
        if token.kind == "-" and number.kind in {"int", "float"}:
            return self._member()
        count = 0
        while self._peek().kind == token.kind:
            self._next()
            count += 1
        node = self._member()
        if count % 2 == 0:
            return node
        return Call(token.position, "!_" if token.kind == "!" else "-_", None, (node,))

    def _member(self) -> Node:
        node = self._primary()
        while self._peek().kind in {".", "["}:
            token = self._next()
            optional = self._peek().kind == "?"
            if optional:
                self._next()
            if token.kind == "[":
                index = self.expression()
                self._expect("]")
                function = "_[?_]" if optional else "_[_]"
                node = Call(token.position, function, None, (node, index))
                continue
            name = self._next()
            if name.kind == "escaped":
                self._stop(name.position, "unsupported syntax: '`'")
            if name.kind in {"true", "false", "null"}:
                said = f"Syntax error: mismatched input '{name.text}' expecting IDENTIFIER"
                self._stop(name.position, said)
            if name.kind != "name":
                seen = token.text + (name.text if name.kind != END else "")
                self._stop(name.position, f"Syntax error: no viable alternative at input '{seen}'")
            field = name.text
            if self._peek().kind == "(" and not optional:
                bracket = self._next()
                arguments = self._arguments(")")
                node = self._expanded(expand_method(node, field, bracket.position, arguments))
            else:
                node = Select(token.position, node, field, optional)
        return node

    def _primary(self) -> Node:
        token = self._next()
        match token.kind:
            case "(":
                node = self.expression()
                self._expect(")")
                return node
            case "[":
                elements, optional = self._elements()
                return ListOf(token.position, elements, optional)
            case "{":
                return self._map(token.position)
            case "true" | "false":
                return Literal(token.position, token.kind == "true")
            case "null":
                return Literal(token.position, None)
            case "string" | "bytes":
                return self._text(token)
            case "int" | "uint" | "float":
                return self._number(token)
            case "-" if self._peek().kind in {"int", "float"}:
                return self._number(token)
            case "." | "name":
                return self._name(token)
            case _:
                self._at = self._tokens.index(token)
                self._no_operand(token)
        raise _StopError

    def _name(self, token: Token) -> Node:
        name = token
        if token.kind == ".":
            name = self._next()
            if name.kind != "name":
                self._stop(name.position, f"Syntax error: missing IDENTIFIER at '{name.text}'")
        if name.text in _RESERVED:
            self._stop(name.position, f"reserved identifier: {name.text}")
        if self._peek().kind == "(":
            bracket = self._next()
            return self._expanded(expand_function(name.text, bracket.position, self._arguments(")")))
        return Name(name.position, name.text)

    def _number(self, token: Token) -> Node:
        number = self._next() if token.kind == "-" else token
        text = ("-" if token.kind == "-" else "") + number.text
        if number.kind == "float":
            if float(text) in {float("inf"), float("-inf")}:
                self._stop(token.position, "invalid double literal")
            return Literal(token.position, float(text))
        digits = number.text.rstrip("uU") if number.kind == "uint" else number.text
        value = int(digits, 16) if digits.startswith("0x") else int(digits) if len(digits) < 64 else 1 << 70
        if number.kind == "uint":
            if value >= 1 << 64:
                self._stop(token.position, "invalid uint literal")
            return Literal(token.position, Uint(value))
        value = -value if token.kind == "-" else value
        if not -MAX_INT64 - 1 <= value <= MAX_INT64:
            self._stop(token.position, "invalid int literal")
        return Literal(token.position, value)

    def _text(self, token: Token) -> Node:
        try:
            return Literal(token.position, unquote(token.text, as_bytes=token.kind == "bytes"))
        except ValueError:
            self._stop(token.position, "unable to unescape string")
        raise _StopError

    def _elements(self) -> tuple[tuple[Node, ...], frozenset[int]]:
        found: list[Node] = []
        optional: list[int] = []
        while self._peek().kind != "]":
            if self._peek().kind == "?":
                self._next()
                optional.append(len(found))
            found.append(self.expression())
            if not self._more("]"):
                break
        self._expect("]")
        return tuple(found), frozenset(optional)

    def _map(self, position: int) -> Node:
        entries: list[tuple[Node, Node]] = []
        optional: list[int] = []
        while self._peek().kind != "}":
            if self._peek().kind == "?":
                self._next()
                optional.append(len(entries))
            key = self.expression()
            self._expect(":")
            entries.append((key, self.expression()))
            if not self._more("}"):
                break
        self._expect("}")
        return MapOf(position, tuple(entries), frozenset(optional))

    def _arguments(self, close: str) -> tuple[Node, ...]:
        found: list[Node] = []
        while self._peek().kind != close:
            found.append(self.expression())
            if not self._more(close):
                break
            if self._peek().kind == close:
                self._expect_operand()
        self._expect(close)
        return tuple(found)

    def _expanded(self, node: Node | Issue) -> Node:
        """Return what a macro stands for; an issue where it is used wrongly."""
        if isinstance(node, Issue):
            self._issues.append(node)
            raise _StopError
        return node

    # ── Tokens ──

    def _peek(self) -> Token:
        return self._tokens[self._at]

    def _next(self) -> Token:
        token = self._tokens[self._at]
        self._at = min(self._at + 1, len(self._tokens) - 1)
        return token

    def _more(self, close: str) -> bool:
        """Step over a comma; what stands there instead must be the closing bracket."""
        token = self._peek()
        if token.kind == ",":
            self._next()
            return True
        if token.kind == END and close == ")":
            self._stop(token.position, "Syntax error: missing ')' at '<EOF>'")
        if token.kind != close:
            expected = f"{{'{close}', ','}}"
            said = f"Syntax error: mismatched input '{token.text}' expecting {expected}"
            if (
                self._tokens[min(self._at + 1, len(self._tokens) - 1)].kind in {close, ","}
                and token.kind != END
            ):
                said = f"Syntax error: extraneous input '{token.text}' expecting {expected}"
            self._stop(token.position, said)
        return False

    def _expect(self, kind: str) -> None:
        token = self._next()
        if token.kind == kind:
            return
        if kind == ":" and not _begins_operand(token):
            self._stop(token.position, f"Syntax error: mismatched input '{token.text}' expecting ':'")
        self._stop(token.position, f"Syntax error: missing '{kind}' at '{token.text}'")

    def _expect_operand(self) -> None:
        self._no_operand(self._peek())

    def _no_operand(self, token: Token) -> None:
        """Report a token that stands where an operand must, and pass over it where an operand follows."""
        before = self._tokens[self._at - 1].kind if self._at else ""
        if before == "(" and (self._at < 2 or self._tokens[self._at - 2].kind != "name"):
            before = ""
        verb = "mismatched"
        if token.kind != END and _begins_operand(self._tokens[self._tokens.index(token) + 1]):
            verb = "extraneous"
        expected = _AFTER.get(before, _OPERANDS)
        said = f"Syntax error: {verb} input '{token.text}' expecting {expected}"
        self._stop(token.position, said)

    def _stop(self, position: int, message: str) -> None:
        self._issues.append(Issue(position, message))
        raise _StopError

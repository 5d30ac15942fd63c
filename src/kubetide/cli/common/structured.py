"""Answers for people and for programs: a table, all of it, JSON or YAML."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click
import msgspec

F = TypeVar("F", bound=Callable[..., Any])

TABLE, WIDE = "table", "wide"


class _Form(click.Choice[str]):
    """The forms of an answer; ``text`` is taken for ``table``."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return super().convert(TABLE if value == "text" else value, param, ctx)


def output_option(*, wide: str = "") -> Callable[[F], F]:
    """Return the option ``-o``. With ``wide``, which says what more there is, that form is offered too."""
    forms = [TABLE, *([WIDE] if wide else []), "json", "yaml"]
    return click.option(
        "--output",
        "-o",
        type=_Form(forms),
        default=TABLE,
        show_default=True,
        help=f"Form of the answer; wide: {wide}." if wide else "Form of the answer.",
    )


def structured(value: object, form: str) -> str:
    """Return a value of msgspec's types as JSON or YAML (``form``), keys in the order of their fields."""
    if form == "json":
        return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    import yaml

    return str(
        yaml.safe_dump(msgspec.to_builtins(value), sort_keys=False, allow_unicode=True, width=110)
    ).rstrip()


def columns(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """Return rows under their headings, aligned."""
    widths = [max(len(row[place]) for row in (head, *rows)) for place in range(len(head))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (head, *rows)
    )

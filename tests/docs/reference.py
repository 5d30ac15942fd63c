"""Pages of the reference that are made from the code as a whole: commands and kinds."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click

from kubetide.cli.main import cli
from kubetide.objects.kinds import (
    CAPACITY_KINDS,
    ELASTIC_WORKLOADS,
    HPAS,
    TIME_TABLE_KINDS,
    VERTICAL_KINDS,
    Kind,
)

MADE = "<!-- made from the code: python -m tests.docs.tables -->\n"


def reference_pages() -> dict[str, str]:
    """Return the pages by their path below docs/."""
    return {"reference/commands.md": _commands(), "reference/kinds.md": _kinds()}


def _commands() -> str:
    parts = [
        "# Commands\n",
        MADE,
        "What each one is for, with examples: [Using kubetide](../usage.md), and `kubetide COMMAND --help`.",
        "Exit statuses are [one table for all](../usage.md#exit-statuses). `run`, `doctor`, `advise` and `config check` also take every",
        "[setting](../settings.md) as a flag.\n",
    ]
    for words, command, context in _leaves(cli, click.Context(cli, info_name="kubetide")):
        parts += [f"## kubetide {' '.join(words)}\n", _summary(command) + "\n"]
        usage = " ".join(command.collect_usage_pieces(context))
        parts.append(f"`kubetide {' '.join(words)} {usage}`\n")
        options = [one for one in command.params if isinstance(one, click.Option)]
        rows = [record for one in options if (record := one.get_help_record(context))]
        if rows:
            parts += ["| Option | |", "|---|---|"]
            parts += [f"| `{_cell(name)}` | {_cell(text).replace('<', '&lt;')} |" for name, text in rows]
            parts.append("")
    return "\n".join(parts)


def _leaves(
    group: click.Group, parent: click.Context
) -> Iterator[tuple[list[str], click.Command, click.Context]]:
    for name in group.list_commands(parent):
        command = group.get_command(parent, name)
        assert command is not None
        context = click.Context(command, info_name=name, parent=parent)
        if isinstance(command, click.Group):
            for words, inner, inner_context in _leaves(command, context):
                yield [name, *words], inner, inner_context
        else:
            yield [name], command, context


def _summary(command: click.Command) -> str:
    first = (command.help or "").strip().split("\n\n")[0]
    return " ".join(first.replace("\b", "").split())


def _cell(text: str) -> str:
    return re.sub(r"\s+", " ", text).replace("|", "\\|")


_SECTIONS: tuple[tuple[str, str, tuple[Kind, ...]], ...] = (
    ("Pods by load", "horizontal.md", (HPAS,)),
    ("One object for all of it", "elastic-workload.md", (ELASTIC_WORKLOADS,)),
    ("Requests", "vertical.md", VERTICAL_KINDS),
    ("Capacity", "capacity.md", CAPACITY_KINDS),
    ("Pods by the clock", "schedules.md", TIME_TABLE_KINDS),
)


def _kinds() -> str:
    lines = [
        "# Kinds\n",
        MADE,
        "The kinds that tell the loops what to do. `kubetide install crds` prints the definitions of *One object for all of it*, *Requests* and *Capacity*;",
        "those of time tables come with their original controllers. The kinds that a HorizontalPodAutoscaler may scale are all that have a",
        "`scale` subresource.\n",
        "| Kind | API | Short names | For |",
        "|---|---|---|---|",
    ]
    for title, page, kinds in _SECTIONS:
        for kind in kinds:
            short = ", ".join(f"`{one}`" for one in kind.short_names)
            lines.append(f"| {kind.kind} | `{kind.group}/{kind.version}` | {short} | [{title}](../{page}) |")
    return "\n".join(lines) + "\n"

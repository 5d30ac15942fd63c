"""``kubetide examples``: the scenarios that are shipped, by name."""

from __future__ import annotations

import difflib
import shutil
from pathlib import Path

import click
import msgspec

from kubetide.cli.common.completing import complete_scenario
from kubetide.cli.common.structured import TABLE, WIDE, columns, output_option, structured
from kubetide.ports.errors import KubetideError
from kubetide.simulate.scenarios.scenario import Scenario, ScenarioError, load_unchecked
from kubetide.simulate.scenarios.shipped import EXAMPLES, shipped


@click.command("examples")
@click.argument("name", required=False, shell_complete=complete_scenario)
@click.option(
    "--to",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder to copy into.  [default: one with the example's name]",
)
@output_option(wide="length, loops and file as well")
def command(name: str | None, to: Path | None, output: str) -> None:
    """List the shipped scenarios, or copy one with its files to change it.

    `kubetide simulate NAME` and `kubetide up NAME` play an example without a copy.

    \b
    Examples:
      kubetide examples
      kubetide examples web-shop
      kubetide examples web-shop --to my-shop
      kubetide simulate web-shop
    """  # noqa: D301  click marks paragraphs with the character, not with two
    found = shipped()
    if name is None:
        examples = [_example(one, path) for one, path in found.items()]
        if output not in (TABLE, WIDE):
            click.echo(structured({"examples": examples}, output))
            return
        if output == WIDE:
            click.echo(
                columns(
                    ("NAME", "DURATION", "LOOPS", "FILE", "ABOUT"),
                    [
                        (one.name, one.duration, ",".join(one.loops), one.file, one.description)
                        for one in examples
                    ],
                )
            )
            return
        width = max(map(len, found))
        for one in examples:
            click.echo(f"{one.name:<{width}}  {one.description}")
        click.echo("\nplay one: kubetide simulate NAME; copy one, to change it: kubetide examples NAME")
        return
    chosen = found.get(name)
    if chosen is None:
        near = difflib.get_close_matches(name, found, n=1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise ScenarioError(f"{name}: no example of that name; {hint}the examples are {', '.join(found)}")
    copied = _copy(chosen, to or Path(name))
    click.echo(f"copied {', '.join(one.name for one in copied)} to {to or name}")
    click.echo(f"try: kubetide simulate {copied[0]}")


class _Example(msgspec.Struct, frozen=True):
    name: str
    description: str
    duration: str
    loops: tuple[str, ...]
    file: str


def _example(name: str, path: Path) -> _Example:
    scenario = load_unchecked(path)
    return _Example(name, _about(path, scenario), scenario.duration, tuple(scenario.loops), str(path))


def _about(path: Path, scenario: Scenario) -> str:
    missing = [
        one.load.trace
        for one in scenario.services
        if one.load.trace is not None and not (path.parent / one.load.trace).exists()
    ]
    return f"{scenario.description}{f' Needs --trace {missing[0]}.' if missing else ''}"


def _copy(path: Path, to: Path) -> list[Path]:
    """Copy an example with what it names; returns the copies, the scenario first. Raises KubetideError."""
    folder = path.parent
    files = (
        [path, *sorted(one for one in folder.iterdir() if one.is_file() and one != path)]
        if folder != EXAMPLES
        else [path, *_named(load_unchecked(path), folder)]
    )
    taken = [to / one.name for one in files if (to / one.name).exists()]
    if taken:
        raise KubetideError(f"{taken[0]} is there already; choose another folder with --to")
    try:
        to.mkdir(parents=True, exist_ok=True)
        return [Path(shutil.copyfile(one, to / one.name)) for one in files]
    except OSError as error:
        raise KubetideError(
            f"cannot copy to {to}: {error.strerror}; choose another folder with --to"
        ) from error


def _named(scenario: Scenario, folder: Path) -> list[Path]:
    """Return the files that a scenario names and that are shipped: manifests, traces and their licences."""
    loads = [one.load for one in scenario.services] + [one.load for one in scenario.external_metrics]
    names = [entry for entry in scenario.manifests if "\n" not in entry]
    for load in loads:
        if load.trace is not None:
            names += [load.trace, f"{load.trace.partition('.')[0]}.LICENSE.txt"]
    return [folder / one for one in dict.fromkeys(names) if (folder / one).is_file()]

"""``kubetide catalog``: prices and shapes of machines as data."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from kubetide.cli.common.exits import FAILED
from kubetide.cli.common.groups import Commands
from kubetide.cli.common.snapshots import snapshot_of, snapshot_options
from kubetide.cli.common.structured import TABLE, output_option, structured
from kubetide.cli.run import OPEN

_FILE = click.Path(path_type=Path, dir_okay=False)
_OUTPUT = output_option()


@click.group("catalog", cls=Commands)
def command() -> None:
    """Prices and shapes of machines as your own data, which overrides the cloud's."""


@command.command("check")
@click.argument("file", type=_FILE)
def check(file: Path) -> None:
    """Check a catalogue, and print its errors.

    Exit status: 0 for a valid catalogue, 1 with the line and the column of each error.
    """
    from kubetide.clouds.catalog import read_catalog

    catalog = read_catalog(file)
    for problem in catalog.warnings:
        click.echo(f"kubetide: {problem}", err=True)
    commitments = sum(row.market == "reserved" for row in catalog.rows)
    click.echo(
        f"{file}: {len(catalog.types)} instance types, {len(catalog.rows)} rows, {commitments} commitments"
    )


@command.command("show")
@click.argument("file", type=_FILE)
@click.option(
    "--type", "types", multiple=True, metavar="TYPE", help="Only this instance type; may be repeated."
)
@click.option("--provider", default="", help="Only entries for this provider.")
@_OUTPUT
def show(file: Path, types: tuple[str, ...], provider: str, output: str) -> None:
    """Show the content of a catalogue: prices by type, zone and market, shapes, commitments.

    \b
    Examples:
      kubetide catalog show prices.csv
      kubetide catalog show prices.csv --type=m5.large -o json
    """  # noqa: D301  click marks paragraphs with the character, not with two
    from kubetide.clouds.catalog import CatalogError, read_catalog
    from kubetide.clouds.catalog.text import catalog_text, plain_rows

    catalog = read_catalog(file)
    if provider:
        catalog = catalog.of(provider)
    unknown = [one for one in types if one not in catalog.types]
    if unknown:
        raise CatalogError(
            f"{file} has no type {', '.join(unknown)}; `kubetide catalog show {file}` lists all"
        )
    rows = [row for row in catalog.rows if not types or row.type in types]
    click.echo(catalog_text(rows) if output == TABLE else structured({"rows": plain_rows(rows)}, output))


@command.command("compare", context_settings=OPEN)
@click.argument("file", type=_FILE)
@_OUTPUT
@snapshot_options
def compare_(
    file: Path, output: str, config: Path | None, after: str, seed: int, arguments: tuple[str, ...]
) -> None:
    """Compare a catalogue with the cloud's data, and with the existing nodes.

    Reads the cluster of your kubeconfig, and with --cloud-provider the cloud; it writes nothing. With
    SCENARIO it reads the embedded cluster of that scenario. Settings are those of `kubetide run`.

    Exit status: 0 if all numbers agree within half a per cent, 1 if one does not, or on failure.

    \b
    Examples:
      kubetide catalog compare prices.csv --cloud-provider=aws --nodes=0:10:workers
      kubetide catalog compare prices.csv web-shop
    """  # noqa: D301  click marks paragraphs with the character, not with two
    from kubetide.clouds.catalog import read_catalog
    from kubetide.clouds.catalog.compare import compare
    from kubetide.clouds.catalog.text import comparison_text

    catalog = read_catalog(file)
    snapshot = snapshot_of(arguments, config, after, seed)
    found = compare(catalog, snapshot.groups, snapshot.nodes)
    click.echo(comparison_text(found) if output == TABLE else structured(found, output))
    if found.differences:
        sys.exit(FAILED)

"""``kubetide sweep``: a scenario under every combination of settings, on several seeds."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from kubetide.cli.common.exits import FAILED

_MOST_ROWS = 40
"""Settings that are all printed; of more only the Pareto front."""
_MOST_FAILED = 20


@click.command("sweep")
@click.argument("scenario", type=click.Path(path_type=Path))
@click.option(
    "--set",
    "sets",
    multiple=True,
    metavar="NAME=V1,V2,...",
    help="A setting and its values, names as of `kubetide what-if`; every combination is run. May be repeated.",
)
@click.option(
    "--patch",
    "patches",
    multiple=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="A file of objects to merge into those of the manifests, in every cell; may be repeated.",
)
@click.option(
    "--seeds",
    type=click.IntRange(1, 10_000),
    default=1,
    show_default=True,
    help="Run each setting on seeds 1 to N.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("kubetide-out/sweep"),
    show_default=True,
    help="Folder for the tables, the page, and the cells that are done.",
)
@click.option(
    "--jobs",
    type=click.IntRange(1, 1024),
    help="Processes on this machine. [default: one for each core]",
)
@click.option("--dask", metavar="ADDRESS", help="Run on this Dask scheduler instead, tcp://HOST:8786.")
@click.option(
    "--records",
    default="",
    metavar="FOLDER|URL",
    help="Keep the records of each cell that is run there: a folder that the workers see, or a URL of fsspec.",
)
@click.option("--parquet", is_flag=True, help="Write the tables as Parquet, too; needs pyarrow.")
@click.option("--resume", is_flag=True, help="Take over the cells that --out has.")
def command(
    scenario: Path,
    sets: tuple[str, ...],
    patches: tuple[Path, ...],
    seeds: int,
    out: Path,
    jobs: int | None,
    dask: str | None,
    records: str,
    parquet: bool,
    resume: bool,
) -> None:
    """Run SCENARIO under every combination of settings, on several seeds, and set the results side by side.

    SCENARIO is a file or the name of a shipped example. Each cell is a run of its own; processes of this machine, or
    the workers of a Dask scheduler, run them, and the results are the same bytes. A cell that fails is named, and the
    others go on. Writes into --out:

    \b
      sweep.html    cost against SLO minutes, what each value does, the cells behind each point
      settings.csv  a row a setting, means over its seeds
      cells.csv     a row a cell
      sweep.json    all of it, with the whole summary of each cell
      cells/        what came of each cell, for --resume
      *.parquet     with --parquet, settings and cells

    Exits with 0, or with 1 where a cell failed.

    \b
    Examples:
      kubetide sweep web-shop --set expander=least-waste,least-cost --set hpa/storefront.target=50,60,70,80
      kubetide sweep my-shop.yaml --set group/general.max=10,20 --seeds 5 --jobs 4
      kubetide sweep web-shop --set hpa/storefront.target=50,60 --seeds 20 --dask tcp://10.0.0.5:8786
    """  # noqa: D301  click marks paragraphs with the character, not with two
    from kubetide.cli.common.cells import resumable, workers_for
    from kubetide.experiments.capture.score import error_bar
    from kubetide.experiments.sweeps.grid import read_axes, variants
    from kubetide.experiments.sweeps.page import write_sweep
    from kubetide.experiments.sweeps.parquet import cells_parquet, check_parquet, settings_parquet
    from kubetide.experiments.sweeps.records import check_target
    from kubetide.experiments.sweeps.results import effects_of, settings_of
    from kubetide.experiments.sweeps.sweep import Store, SweepError, run_sweep
    from kubetide.experiments.sweeps.tables import (
        cells_csv,
        effects_table,
        settings_csv,
        settings_table,
        sweep_json,
    )
    from kubetide.runtime.recording.folder import write_whole
    from kubetide.simulate.outcome.table import aligned, printable
    from kubetide.simulate.scenarios.scenario import load_scenario
    from kubetide.simulate.scenarios.shipped import scenario_path

    if not sets:
        raise click.UsageError("nothing is varied: name a setting and its values with --set NAME=V1,V2")
    if dask and jobs:
        raise click.UsageError(
            "--jobs is for processes of this machine, --dask has its own workers: give one of them"
        )
    check_target(records)
    if parquet:
        check_parquet()
    scenario = scenario_path(scenario)
    loaded = load_scenario(scenario)
    axes = read_axes(sets)
    found = variants(scenario, loaded, axes, patches)
    store = Store(out / "cells")
    if len(store) and not resume:
        raise SweepError(
            f"{out} has {len(store)} cells of a sweep: go on with --resume, or choose another folder with --out"
        )
    total = len(found) * seeds
    with (
        resumable(),
        workers_for(dask, jobs, total) as workers,
        click.progressbar(
            length=total, label=loaded.name, show_pos=True, file=sys.stderr, hidden=not sys.stderr.isatty()
        ) as bar,
    ):
        cells = run_sweep(
            found,
            range(1, seeds + 1),
            base=scenario.parent,
            workers=workers,
            store=store,
            records=str(Path(records).absolute()) if records and "://" not in records else records,
            done=lambda: bar.update(1),
        )
    settings = settings_of(cells)
    effects = effects_of(axes, settings)
    files = {
        "cells.csv": cells_csv(axes, cells),
        "settings.csv": settings_csv(axes, settings),
        "sweep.json": sweep_json(loaded.name, axes, cells, settings, effects),
    }
    if parquet:
        files |= {
            "cells.parquet": cells_parquet(axes, cells),
            "settings.parquet": settings_parquet(axes, settings),
        }
    page = out / "sweep.html"
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            write_whole(out / name, lambda path, content=content: path.write_bytes(content))  # type: ignore[misc]
        write_whole(page, lambda path: write_sweep(path, loaded.name, axes, cells, settings, effects))
    except OSError as error:
        raise SweepError(
            f"cannot write under {out}: {error.strerror}; free space there, and go on with --resume"
        ) from error
    fixed = [f"{axis.name}={axis.values[0]}" for axis in axes if len(axis.values) == 1]
    heading = [f"{len(found)} settings x {seeds} seeds", *fixed]
    click.echo(f"{printable(loaded.name)}   {printable(', '.join(heading))}\n")
    shown = settings if len(settings) <= _MOST_ROWS else [one for one in settings if one.front or one.failed]
    click.echo(aligned(settings_table(axes, shown)))
    if len(shown) < len(settings):
        click.echo(f"... and {len(settings) - len(shown)} behind the Pareto front, in settings.csv")
    click.echo("\n* Pareto front: no other setting costs as little and loses as few SLO minutes\n")
    if effects:
        click.echo(f"{aligned(effects_table(effects))}\n")
    if measured_error := error_bar(scenario):
        click.echo(f"{printable(measured_error)}\n")
    click.echo(f"page     {page}")
    click.echo(f"tables   {', '.join(str(out / name) for name in files)}")
    failed = [cell for cell in cells if cell.outcome.error]
    if not failed:
        return
    click.echo(f"{len(failed)} of {total} cells failed:", err=True)
    for cell in failed[:_MOST_FAILED]:
        named = " ".join(f"{axis.name}={value}" for axis, value in zip(axes, cell.values, strict=True))
        click.echo(f"  {printable(named)} seed {cell.seed}: {printable(cell.outcome.error)}", err=True)
    if len(failed) > _MOST_FAILED:
        click.echo(f"  ... and {len(failed) - _MOST_FAILED} more, in cells.csv", err=True)
    sys.exit(FAILED)

"""``kubetide sweep``: a scenario under many combinations of settings, on several seeds."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from kubetide.cli.common.cells import cells_bar, cells_in, resumable, worker_options, workers_for
from kubetide.cli.common.exits import FAILED


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
    "--sample",
    type=click.IntRange(min=1),
    metavar="N",
    help="Run N of the combinations, drawn at random, the same ones each time.  [default: all]",
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
    help="Folder for the tables, the page, and the finished cells.",
)
@click.option(
    "--records",
    default="",
    metavar="FOLDER|URL",
    help="Store the records of each cell there: a folder that the workers can reach, or a URL of fsspec.",
)
@click.option("--parquet", is_flag=True, help="Write the tables as Parquet too; needs pyarrow.")
@worker_options
def command(
    scenario: Path,
    sets: tuple[str, ...],
    sample: int | None,
    patches: tuple[Path, ...],
    seeds: int,
    out: Path,
    jobs: int | None,
    dask: str | None,
    records: str,
    parquet: bool,
    resume: bool,
) -> None:
    """Run SCENARIO under every combination of settings, or a sample of them, on several seeds, and compare the results.

    SCENARIO is a file or the name of a shipped example. Each cell is a run of its own; processes of this machine, or
    the workers of a Dask scheduler, run them, and the results are the same bytes. A failed cell is reported, and the
    others go on. Writes into --out:

    \b
      sweep.html    cost against SLO minutes or waiting, the effect of each value, the cells behind each point
      settings.csv  one row per setting, means over its seeds
      cells.csv     one row per cell
      sweep.json    all of it, with the whole summary of each cell
      cells/        the result of each cell, for --resume
      *.parquet     with --parquet, settings and cells

    Exits with 0, or with 1 if a cell failed.

    \b
    Examples:
      kubetide sweep web-shop --set expander=least-waste,least-cost --set hpa/storefront.target=50,60,70,80
      kubetide sweep web-shop --set hpa/storefront.target=50,60,70,80 --set scale-down-unneeded-time=2m,5m,10m --sample 6
      kubetide sweep my-shop.yaml --set group/general.max=10,20 --seeds 5 --jobs 4
      kubetide sweep web-shop --set hpa/storefront.target=50,60 --seeds 20 --dask tcp://10.0.0.5:8786
    """  # noqa: D301  click marks paragraphs with the character, not with two
    from kubetide.cli.common.sweep_results import SweepResult, show, write
    from kubetide.experiments.capture.score import error_bar
    from kubetide.experiments.sweeps.grid import read_axes, variants
    from kubetide.experiments.sweeps.parquet import check_parquet
    from kubetide.experiments.sweeps.records import check_target
    from kubetide.experiments.sweeps.results import criterion_of, effects_of, settings_of
    from kubetide.experiments.sweeps.sweep import run_sweep
    from kubetide.simulate.scenarios.scenario import load_scenario
    from kubetide.simulate.scenarios.shipped import scenario_path

    if not sets:
        raise click.UsageError("nothing is varied: name a setting and its values with --set NAME=V1,V2")
    check_target(records)
    if parquet:
        check_parquet()
    scenario = scenario_path(scenario)
    loaded = load_scenario(scenario)
    axes = read_axes(sets)
    found = variants(scenario, loaded, axes, patches, sample=sample)
    store = cells_in(out, resume=resume)
    total = len(found) * seeds
    with resumable(), workers_for(dask, jobs, total) as workers, cells_bar(loaded.name, total) as bar:
        cells = run_sweep(
            found,
            range(1, seeds + 1),
            base=scenario.parent,
            workers=workers,
            store=store,
            records=str(Path(records).absolute()) if records and "://" not in records else records,
            done=lambda: bar.update(1),
        )
    criterion = criterion_of(cells)
    settings = settings_of(cells, criterion)
    result = SweepResult(loaded.name, axes, cells, settings, effects_of(axes, settings, criterion), criterion)
    written = write(out, result, parquet=parquet)
    show(result, out, written, seeds, error_bar(scenario))
    if result.failed:
        sys.exit(FAILED)

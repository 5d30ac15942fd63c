"""``kubetide advise``: what requests cost, and what they could be."""

from __future__ import annotations

from pathlib import Path

import click

from kubetide.cli.common.snapshots import refuse_settings
from kubetide.cli.run import OPEN


@click.command("advise", context_settings=OPEN)
@click.option(
    "--output",
    "-o",
    type=click.Choice(["table", "csv", "json", "html"]),
    default="table",
    show_default=True,
)
@click.option(
    "--file", type=click.Path(path_type=Path, dir_okay=False), help="Write to this file, not to the terminal."
)
@click.option("--namespace", "-n", default="", help="Only this namespace.  [default: all]")
@click.option(
    "--for",
    "watched",
    default="2m",
    show_default=True,
    metavar="DURATION",
    help="How long usage is read from the metrics API; Prometheus has history, a scenario its own duration.",
)
@click.option(
    "--prices",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Price list (YAML): cpu (a core for an hour), memory (a GiB for an hour), currency.  [default: OpenCost's]",
)
@click.option(
    "--top", type=click.IntRange(min=0), default=0, metavar="N", help="Rows of the table.  [default: all]"
)
@click.option(
    "--config", type=click.Path(path_type=Path, dir_okay=False), help="File of settings, as for `run`."
)
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of the scenario.")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[SCENARIO] [--name=value]...")
def command(
    output: str,
    file: Path | None,
    namespace: str,
    watched: str,
    prices: Path | None,
    top: int,
    config: Path | None,
    seed: int,
    arguments: tuple[str, ...],
) -> None:
    """Report per container its requests, usage and recommended requests, their monthly cost, and the risk.

    Reads the cluster of your kubeconfig, whatever controllers run there, and writes nothing: pods, their controllers,
    HPAs, and usage from the metrics API or from Prometheus. With SCENARIO, a file or the name of a shipped example,
    it plays that scenario in virtual time.

    Settings are those of `kubetide run`: --kubeconfig, --context, --prometheus-url with the names of metrics and
    labels (docs/vertical.md), and the recommender's percentiles, margin and minimums.

    \b
    Examples:
      kubetide advise
      kubetide advise --for=10m -n shop -o csv
      kubetide advise --prometheus-url=http://prometheus:9090 --history-length=14d -o html --file=savings.html
      kubetide advise vertical
    """  # noqa: D301  click marks paragraphs with the character, not with two
    from kubetide.advise import Prices, Report, read_prices
    from kubetide.advise.subjects import Terms, report_of_cluster, report_of_scenario
    from kubetide.advise.text import csv_text, html_text, table_text
    from kubetide.cli.common.structured import structured
    from kubetide.cli.run import configuration
    from kubetide.ports.errors import KubetideError
    from kubetide.units.time import parse_duration

    terms = Terms(
        Prices() if prices is None else read_prices(prices),
        namespace,
        lambda text: click.echo(f"kubetide: {text}", err=True),
    )

    def of_scenario(name: str) -> Report:
        from kubetide.simulate.scenarios.scenario import load_scenario
        from kubetide.simulate.scenarios.shipped import scenario_path

        refuse_settings(arguments)
        path = scenario_path(Path(name))
        return report_of_scenario(load_scenario(path), terms, base=path.parent, seed=seed)

    if arguments and not arguments[0].startswith("-"):
        found = of_scenario(arguments[0])
    else:
        try:
            duration = parse_duration(watched)
        except ValueError as error:
            raise click.BadParameter(
                f"{watched!r} is no duration; write 2m or 1h", param_hint="--for"
            ) from error
        found = report_of_cluster(configuration(config, list(arguments)), terms, duration)
    if not found.rows:
        raise KubetideError(
            f"{found.source}: no container of a pod that is there used anything"
            + (f" in namespace {namespace}" if namespace else "")
            + "; are metrics served, and do the names of labels fit (docs/advise.md)?"
        )
    if output == "json":
        text = structured(found, "json")
    else:
        text = (
            {"csv": csv_text, "html": html_text}[output](found)
            if output != "table"
            else table_text(found, top)
        )
    if file is None:
        click.echo(text)
        return
    try:
        file.write_text(f"{text}\n", encoding="utf-8")
    except OSError as error:
        raise KubetideError(f"{file}: cannot be written: {error.strerror}") from error
    click.echo(f"{file}: {len(found.rows)} containers")

"""All given data sets, as upstream would decide and as kubetide can: `python -m bench quality [--hours H] [--write]`.

`bench plan` plays the load series (classic HPA and upstream's node loop against `plan`), `bench bill` the sets of pods
(upstream's node loop against `ours`). Prints two tables in Markdown, or the one that `--only` names; `--write` puts them into
docs/quality.md.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bench.bill.__main__ import DATA

PAGE = Path(__file__).parents[1] / "docs" / "quality.md"
BEGIN, END = "<!-- python -m bench quality -->", "<!-- end -->"


class QualityError(Exception):
    """A benchmark that failed, with what it said."""


def figures(name: str, arguments: Sequence[str]) -> dict[str, Any]:
    """Return the JSON of a benchmark's last line. Raises: QualityError."""
    command = [sys.executable, "-m", "bench", name, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    if done.returncode or not lines:
        raise QualityError(f"{' '.join(command[1:])} failed: {done.stderr.strip()[-2000:]}")
    found: dict[str, Any] = json.loads(lines[-1])
    return found


def series_table(found: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of the table of load series; the last rows are sums, and costs are held against the first policy's."""
    yield (
        "| series | policy | SLO minutes | at its own step | not served | pod-minutes | nodes, USD | cost | rescales "
        "| bought | evictions |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|---|"
    for name, policies in {**found["series"], "all": found["sum"]}.items():
        first = next(iter(policies.values()))["node_cost"]
        for place, (policy, one) in enumerate(policies.items()):
            yield (
                f"| {f'`{name}`' if place == 0 else ''} | `{policy}` | {one['slo_minutes']:,} | "
                f"{one['slo_minutes_own_step']:,} | {100 * one['unserved']:.2f} % | {one['pod_minutes']:,.0f} | "
                f"{one['node_cost']:,.2f} | {one['node_cost'] / first if first else 1:.3f} | {one['rescales']:,} | "
                f"{one['nodes_bought']:,} | {one['evictions']:,} |"
            )


def sets_table(found: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of the table of sets of pods."""
    yield "| set (pods; bound) | policy | times the bound | wait p95 / longest | bought | removed | bought back | evictions |"
    yield "|---|---|---|---|---|---|---|---|"
    for one in found.get("sets", [found]):
        for place, (policy, row) in enumerate(one["policies"].items()):
            title = f"`{one['set']}` ({row['pods']:,}; {row['bound_usd']:,.2f} USD)" if place == 0 else ""
            _, late, longest = row["wait_s"]
            ratio = "" if row["ratio"] is None else f"{row['ratio']:.3f}"
            yield (
                f"| {title} | `{policy}` | {ratio} | {late:,.0f} / {longest:,.0f} s | {row['bought']:,} | "
                f"{row['deleted']:,} | {row['bought_back_15m']:,} | {row['evictions']:,} |"
            )


def tables(
    plan: dict[str, Any] | None, bill: dict[str, Any] | None, *, seed: str, hours: str | None, some: bool
) -> str:
    """Return the tables that there are with a line on what they are of.

    Args:
        some: Whether the load series are others than the given ones.
    """
    heading = f"Seed {seed}{f', {hours} hours of each set of pods' if hours and bill else ''}"
    series = f"; load series: {', '.join(plan['series'])}" if some and plan else ""
    parts = [
        *(["", *series_table(plan)] if plan else []),
        *(["", *sets_table(bill)] if bill else []),
    ]
    return "\n".join([f"{heading}{series}.", *parts, ""])


def written(page: str, text: str) -> str:
    """Return the page with the text between its marks. Raises: QualityError where it has none."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise QualityError(f"{PAGE} has no {BEGIN} before {END}; put them where the tables belong")
    return f"{before}{BEGIN}\n{text}{END}{after}"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench quality", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--hours", help="how long the sets of pods are played; none for all of them")
    parser.add_argument(
        "--series", action="append", default=[], help="this series, as of bench plan; none for the given ones"
    )
    parser.add_argument("--pods", help="a CSV of pods instead of the sets, as of bench bill")
    parser.add_argument("--types", help="a CSV of types of nodes, with --pods")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--data", default=str(DATA))
    parser.add_argument("--jobs", default="2", help="runs side by side; they do not change the figures")
    parser.add_argument("--only", choices=("plan", "bill"), help="of the two tables this one alone")
    parser.add_argument("--results", help="a file of ended runs of load series, as of bench plan")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/quality.md")
    said = parser.parse_args(arguments)
    common = ["--seed", said.seed, "--data", said.data, "--jobs", said.jobs]
    own = ["--hours", said.hours] if said.hours else []
    for name in ("pods", "types"):
        own += [f"--{name}", getattr(said, name)] if getattr(said, name) else []
    results = ["--results", said.results] if said.results else []
    played = [*said.series, "--nodes", "--policy", "classic", "--policy", "plan", *results, *common]
    try:
        plan = figures("plan", played) if said.only != "bill" else None
        bill = (
            figures("bill", ["--policy", "upstream", "--policy", "ours", *own, *common])
            if said.only != "plan"
            else None
        )
        text = tables(plan, bill, seed=said.seed, hours=said.hours, some=bool(said.series))
        if said.write:
            PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), text), encoding="utf-8")
    except (QualityError, OSError) as error:
        print(f"bench quality: {error}", file=sys.stderr)
        return 2
    print(text)
    print(json.dumps({"plan": plan, "bill": bill}))
    return 0


if __name__ == "__main__":
    sys.exit(main())

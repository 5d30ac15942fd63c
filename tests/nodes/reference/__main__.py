"""Hunt for stories that the reference and production play differently: ``python -m tests.nodes.reference 1000 2000``."""

from __future__ import annotations

import sys

import click
from tests.nodes.reference.playing import difference, drawn


@click.command()
@click.argument("first", type=int)
@click.argument("end", type=int)
@click.option("--steps", default=30, show_default=True, help="Loops of each story.")
def hunt(first: int, end: int, steps: int) -> None:
    """Play the seeds from FIRST up to END and print where each story differs."""
    found = 0
    for seed in range(first, end):
        wrong = difference(drawn(seed, steps))
        if wrong is not None:
            found += 1
            click.echo(f"{seed}: {wrong}")
    click.echo(f"{end - first} stories of {steps} loops, {found} differ")
    sys.exit(found > 0)


if __name__ == "__main__":
    hunt()

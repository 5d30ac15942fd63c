"""``kubetide ui``: the dashboard."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("ui")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("kubetide-out"),
    show_default=True,
    help="Folder that a run writes to, or wrote to.",
)
@click.option(
    "--listen",
    metavar="ADDR",
    default="127.0.0.1:0",
    show_default=True,
    help="HOST:PORT; port 0 is any free one.",
)
@click.option(
    "--token-file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The token to ask for; needed to listen beyond this machine.  [default: a new one, in the printed address]",
)
@click.option("--open", "opens", is_flag=True, help="Open the address in a browser.")
def command(out: Path, listen: str, token_file: Path | None, opens: bool) -> None:
    """Show a run in a browser: what there is, what waits, what was decided and why, now and at any time before.

    Reads the decision records of a run, also of a `kubetide up` or `kubetide run` that is going on, and writes
    nothing. It is a process of its own, so it cannot slow a loop. Ctrl-C ends it.

    \b
    Examples:
      kubetide ui
      kubetide ui --out monday --open
      kubetide ui --out /var/lib/kubetide --listen 0.0.0.0:8080 --token-file token
    """  # noqa: D301  click marks paragraphs with the character, not with two
    from kubetide.web.serve import serve

    serve(out, listen, token_file, say=click.echo, visit=click.launch if opens else None)

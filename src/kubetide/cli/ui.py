"""``kubetide ui``: the dashboard."""

from __future__ import annotations

import os
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
    help="HOST:PORT; without HOST all addresses, port 0 is any free one.",
)
@click.option(
    "--token-file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File with the token that browsers must send; needed to listen beyond this machine.  [default: a new one, in the printed address]",
)
@click.option(
    "--kubernetes-access",
    is_flag=True,
    help="Ask the API server who may look (TokenReview, SubjectAccessReview), instead of using a token.",
)
@click.option(
    "--kubeconfig", default="", help="Kubeconfig of that API server.  [default: as kubectl finds it]"
)
@click.option("--context", default="", help="A context of the kubeconfig.")
@click.option("--open", "opens", is_flag=True, help="Open the address in a browser.")
def command(
    out: Path,
    listen: str,
    token_file: Path | None,
    kubernetes_access: bool,
    kubeconfig: str,
    context: str,
    opens: bool,
) -> None:
    """Show a run in a browser: objects, pending work, decisions and their reasons, now and at any earlier time.

    Reads the decision records of a run, also of a running `kubetide up` or `kubetide run`, and writes
    nothing. It is a process of its own, so it cannot slow a loop. Ctrl-C ends it.

    \b
    Examples:
      kubetide ui
      kubetide ui --out monday --open
      kubetide ui --out /var/lib/kubetide --listen :8080 --token-file token
      kubetide ui --out /var/lib/kubetide --listen :8080 --kubernetes-access
    """  # noqa: D301  click marks paragraphs with the character, not with two
    from kubetide.web.serve import serve

    api_server = None
    if kubernetes_access:
        if token_file is not None:
            raise click.UsageError(
                "--token-file and --kubernetes-access are two ways to say who may look; choose one"
            )
        from kubetide.cluster import find_connection

        api_server = find_connection(os.environ, home=Path.home(), kubeconfig=kubeconfig, context=context)
    elif kubeconfig or context:
        raise click.UsageError("--kubeconfig and --context belong to --kubernetes-access")
    visit = click.launch if opens else None
    serve(out, listen, token_file, say=click.echo, visit=visit, api_server=api_server)

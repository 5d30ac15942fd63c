"""``kubetide completion``: completion for a shell."""

from __future__ import annotations

import click

from kubetide.ports.errors import KubetideError

VARIABLE = "_KUBETIDE_COMPLETE"
_SHELLS = ("bash", "zsh", "fish")


@click.command("completion")
@click.argument("shell", type=click.Choice(_SHELLS))
def command(shell: str) -> None:
    """Print the script that completes commands, flags, scenarios, and names of objects in the records.

    Names are those at the end of the records in --out, by default of kubetide-out in the present folder.

    \b
    Examples:
      source <(kubetide completion bash)       in ~/.bashrc
      source <(kubetide completion zsh)        in ~/.zshrc, behind compinit
      kubetide completion fish | source        in ~/.config/fish/config.fish
    """  # noqa: D301  click marks paragraphs with the character, not with two
    from click.shell_completion import get_completion_class

    from kubetide.cli.main import cli

    found = get_completion_class(shell)
    if found is None:
        raise KubetideError(f"click knows no completion for {shell}")
    made = found(cli, {}, "kubetide", VARIABLE)
    # Not source(): it starts a bash only to warn of an old one.
    click.echo(made.source_template % made.source_vars())

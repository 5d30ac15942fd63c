"""Groups of commands whose help lists each command with its whole first sentence."""

from __future__ import annotations

import click

_WHOLE = 1_000
"""More characters than any sentence has: click cuts one to what is left of a line."""


class Commands(click.Group):
    """A group whose sentences are wrapped, not cut."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of the commands."""
        found = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl([(name, one.get_short_help_str(_WHOLE)) for name, one in found if one])

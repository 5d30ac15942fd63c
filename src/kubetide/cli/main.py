"""The ``kubetide`` command: one file a sub-command, imported only when it is called."""

from __future__ import annotations

import atexit
import errno
import gc
import importlib
import sys
from pathlib import Path

import click

from kubetide import __version__
from kubetide.cli.common.exits import FAILED, INTERRUPTED
from kubetide.ports.errors import KubetideError

_COMMANDS = {
    "up": "Run the embedded cluster in real or sped-up time and watch the loops at work.",
    "load": "Show and change the load of a run that `up --serve` serves.",
    "fault": "Inject faults into a run that `up --serve` serves, and clear them.",
    "run": "Run the loops on the cluster of your kubeconfig: advice, or with --act the real thing.",
    "cluster-autoscaler": "Run the node loop by Cluster Autoscaler's own command line.",
    "vpa-recommender": "Run the VPA recommender instead of upstream's, with its flags.",
    "vpa-updater": "Run the VPA updater instead of upstream's, with its flags.",
    "vpa-admission-controller": "Run the VPA admission controller instead of upstream's, with its flags.",
    "convert": "Convert HPAs, VPAs and time tables into ElasticWorkloads, and back.",
    "install": "Print or apply the definitions of custom kinds.",
    "handover": "Show who serves which HPA, and move HPAs between kubetide and another controller.",
    "config": "Show and check what `run` would be configured with.",
    "cloud": "Serve a cloud provider to upstream's Cluster Autoscaler.",
    "catalog": "Show, check and compare prices and shapes of machines as your own data.",
    "expander": "Serve expanders to upstream's Cluster Autoscaler.",
    "simulate": "Run a scenario in virtual time and write its records and report.",
    "capture": "Make a scenario of the records of a run.",
    "what-if": "Run a scenario as it is and with changes, and set both side by side.",
    "sweep": "Run a scenario under many combinations of settings, here or on Dask.",
    "tune": "Search which settings to change, and judge the result on runs not seen.",
    "test": "Test policies: scenarios with what must hold in them.",
    "examples": "List the scenarios that are shipped, and copy one.",
    "explain": "Say why: a pod, an HPA, a node or a node group, at any time of a run.",
    "plan": "Show what is to come: time tables, forecast load, nodes that are asked for, and why.",
    "status": "Show one page of all: loops, node groups, HPAs, what waits, the last decisions.",
    "top": "Show a run or a cluster on the whole terminal, as it changes.",
    "ui": "Show a run in a browser, live or afterwards.",
    "doctor": "Say what keeps a cluster from scaling well, why it matters, and the fix.",
    "completion": "Print the script that completes commands and names in bash, zsh or fish.",
    "advise": "Report what requests cost and what they could be, from usage alone.",
    "replay": "Decide every recorded tick again and compare the bytes.",
}

PLUGIN = "kubectl-kubetide"
"""The name under which kubectl finds it."""


class _Lazy(click.Group):
    """Lists the commands without importing what they run on."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  click's signature
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:  # noqa: ARG002
        if name not in _COMMANDS:
            return None
        if name.startswith("vpa-"):
            from kubetide.cli.vpa import COMMANDS

            return COMMANDS[name]
        command: click.Command = importlib.import_module(f"kubetide.cli.{name.replace('-', '_')}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; name the nearest where there is none."""
        name = args[0]
        if name not in _COMMANDS and not ctx.resilient_parsing and not name.startswith("-"):
            import difflib

            near = difflib.get_close_matches(name, _COMMANDS, n=1)
            hint = f"did you mean {near[0]}?" if near else "`kubetide --help` lists the commands"
            ctx.fail(f"no such command {name!r}; {hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="kubetide")
def cli() -> None:
    """The whole Kubernetes autoscaling stack as one Python program.

    Start with `kubetide up`: an embedded cluster, a shop under load, pods that follow the load,
    nodes that follow the pods, and the reason for every step. No cluster is needed and no
    kubeconfig is read.
    """


def main() -> None:
    """Run the command line; an expected error is one line on standard error and exit status 1.

    As `kubectl-kubetide` it is a plugin of kubectl, and calls itself so.
    """
    # As of ``runtime.process.tune_gc``: an answer makes much that stays, and is over before any of it is garbage.
    gc.set_threshold(100_000, 50, 100)
    # At the end all memory goes at once; to look for cycles in it then would take a tenth of a short answer.
    atexit.register(gc.freeze)
    is_plugin = Path(sys.argv[0]).stem == PLUGIN
    try:
        cli.main(
            prog_name="kubectl kubetide" if is_plugin else "kubetide",
            complete_var="_KUBETIDE_COMPLETE",
            standalone_mode=False,
        )
    except click.exceptions.Abort:
        sys.exit(INTERRUPTED)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except KubetideError as error:
        click.echo(f"kubetide: {error}", err=True)
        sys.exit(FAILED)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        file = error.filename or "standard output"
        click.echo(f"kubetide: cannot write {file}: {error.strerror}; free space there", err=True)
        sys.exit(FAILED)

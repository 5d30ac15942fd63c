"""``kubetide cluster-autoscaler``: the node loop by upstream's command line."""

from __future__ import annotations

import os

import click


class _AsUpstream(click.Command):
    """A command whose arguments click leaves alone: they are read by pflag's rules."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.args = list(args)
        return ctx.args


@click.command("cluster-autoscaler", cls=_AsUpstream)
@click.pass_context
def command(context: click.Context) -> None:
    """Run the node loop by the command line of Cluster Autoscaler: every flag of upstream, and it acts.

    Leave the arguments of your Deployment as they are. All flags that cannot be used are reported at once, each with the
    fix; docs/cluster-autoscaler.md lists the effect of every flag. Without --kubeconfig the pod's own account is
    used.

    \b
    Beside upstream's flags there are kubetide's own settings of the node loop (docs/settings.md), and:
      --advise             decide and explain, and write nothing
      --context=NAME       of the kubeconfig  [its current one]
      --log-format=FORMAT  console or json  [console]
      --out=FOLDER         decision records, for `kubetide explain`  [kubetide-out]

    \b
    Examples:
      kubetide cluster-autoscaler --cloud-provider=aws --nodes=1:10:workers-a --nodes=0:5:gpu
      kubetide cluster-autoscaler --cloud-provider=labels --kubeconfig=$HOME/.kube/config --advise
    """  # noqa: D301  click marks paragraphs with the character, not with two
    from kubetide.cli.common.drop_in import run_in_place
    from kubetide.cluster.access.incluster import SERVICE_ACCOUNT, why_no_account
    from kubetide.runtime.upstream import understand

    config, warnings, _ = understand(context.args, no_pod=why_no_account(os.environ, SERVICE_ACCOUNT))
    if config is None:
        click.echo(context.get_help())
        return
    run_in_place(config, warnings)

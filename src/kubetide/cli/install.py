"""``kubetide install``: what a cluster needs before the loops can run."""

from __future__ import annotations

import click

from kubetide.cli.common.groups import Commands


@click.group("install", cls=Commands)
def command() -> None:
    """Print the objects that a cluster needs before the loops can run, or install them."""


@command.command("crds")
@click.option(
    "--apply", "applies", is_flag=True, help="Install them in the cluster; without it they are printed."
)
@click.option("--kubeconfig", default="", metavar="PATH", help="Kubeconfig, as for kubectl.")
@click.option("--context", "context_name", default="", metavar="NAME", help="Context of the kubeconfig.")
def crds(applies: bool, kubeconfig: str, context_name: str) -> None:
    """The definitions of the kinds of VPA objects, of ProvisioningRequest, CapacityBuffer and CapacityQuota, as upstream's, and of ElasticWorkload.

    \b
    Examples:
      kubetide install crds | kubectl apply -f -
      kubetide install crds --apply
    """  # noqa: D301  click marks paragraphs with the character, not with two
    from kubetide.elastic.definitions import definitions as elastic_definitions
    from kubetide.nodes.capacity.definitions import definitions as capacity_definitions
    from kubetide.runtime.install import install_definitions
    from kubetide.vertical.definitions import definitions, printed

    every = (*definitions(), *capacity_definitions(), *elastic_definitions())
    if applies:
        install_definitions(every, kubeconfig=kubeconfig, context=context_name, tell=click.echo)
    else:
        click.echo(printed(every))

"""``kubetide handover``: who serves which HPA, and moving them."""

from __future__ import annotations

import click

from kubetide.cli.common.structured import TABLE, output_option, structured


@click.command("handover")
@click.argument("names", nargs=-1, metavar="[NAMESPACE/NAME]...")
@click.option(
    "--to",
    type=click.Choice(["kubetide", "others"]),
    help="Controller that shall serve the HPAs; without it they are only shown.",
)
@click.option(
    "--wait",
    default="0s",
    metavar="DURATION",
    help="How long to wait until the other controller is gone, or has come.",
)
@click.option("--probe", is_flag=True, help="Find out whether the controllers that are shown still run.")
@click.option("--force", is_flag=True, help="Move to kubetide without probing, even if no run acts.")
@click.option("--kubeconfig", default="", metavar="PATH", help="Kubeconfig, as for kubectl.")
@click.option("--context", "context_name", default="", metavar="NAME", help="Context of the kubeconfig.")
@click.option(
    "--namespace",
    default="kube-system",
    show_default=True,
    help="Namespace of the Lease of `kubetide run --act`.",
)
@click.option(
    "--sync-period",
    default="15s",
    show_default=True,
    metavar="DURATION",
    help="Sync period of the controllers; the probe waits for two.",
)
@output_option()
def command(
    names: tuple[str, ...],
    to: str | None,
    wait: str,
    probe: bool,
    force: bool,
    kubeconfig: str,
    context_name: str,
    namespace: str,
    sync_period: str,
    output: str,
) -> None:
    """Show who serves which HPA, and move HPAs between kubetide and another controller.

    An HPA whose status another controller has written is left alone by `kubetide run --act` until it is
    handed over. The annotation kubetide.dev/handover of the HPA records that, so it survives a restart.
    To find out whether the other controller still runs, the command changes a condition of up to three
    HPAs: a running controller restores it within two sync periods. Any write of another controller takes
    an HPA away from kubetide at once.

    NAMES are HPAs; the default is all of them. Needs the rights to patch HPAs and their status.

    \b
    Examples:
      kubetide handover
      kubetide handover --to kubetide --wait 10m     then switch upstream's controller off
      kubetide handover --to others --wait 10m       then switch upstream's controller on
      kubetide handover --to kubetide shop/cart
    """  # noqa: D301  click marks paragraphs with the character, not with two
    from kubetide.runtime.handover.command import hand_over, table
    from kubetide.runtime.handover.move import Row

    def shown(rows: list[Row], form: str) -> str:
        if form == TABLE:
            return table(rows)
        return structured({"hpas": [row._asdict() for row in rows]}, form)

    if to and output != TABLE:
        raise click.UsageError("--output is for showing HPAs; leave it out, or --to")
    if to and probe:
        raise click.UsageError("--probe is for showing HPAs; --to kubetide probes by itself")
    if force and to != "kubetide":
        raise click.UsageError("--force goes with --to kubetide")
    from kubetide.units.time import Duration, parse_duration

    def duration(option: str, text: str, *, least: int) -> Duration:
        try:
            found = parse_duration(text)
        except ValueError as error:
            raise click.BadParameter(
                f"{text!r} is no duration; write 30s or 10m", param_hint=option
            ) from error
        if found < least:
            raise click.BadParameter(f"{text} is too short; write 30s or 10m", param_hint=option)
        return found

    waits = duration("--wait", wait, least=0)
    if waits and not to:
        raise click.UsageError("--wait goes with --to")

    hand_over(
        names,
        to=to or "",
        wait=waits,
        asks=probe,
        force=force,
        kubeconfig=kubeconfig,
        context=context_name,
        namespace=namespace,
        sync_period=duration("--sync-period", sync_period, least=1),
        tell=click.echo,
        show=lambda rows: click.echo(shown(rows, output)),
    )

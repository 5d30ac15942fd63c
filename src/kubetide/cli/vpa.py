"""``kubetide vpa-recommender``, ``vpa-updater`` and ``vpa-admission-controller``: upstream's programs by their flags."""

from __future__ import annotations

import os

import click

from kubetide.cli.run import OPEN

_WORK = {
    "vpa-recommender": "write recommendations and checkpoints of VPA objects.",
    "vpa-updater": "evict and resize pods whose VPA recommends other requests.",
    "vpa-admission-controller": "give new pods what their VPA recommends, and check VPA objects.",
}


def _command(name: str) -> click.Command:
    @click.command(
        name,
        context_settings=OPEN,
        help=f"In the place of upstream's {name}: {_WORK[name]}\n\n"
        "Takes upstream's flags with upstream's defaults, and acts at once. Flags of `kubetide run` are taken as well: "
        "--act=false only advises, --out=FOLDER is where decision records go.",
    )
    @click.pass_context
    def run(context: click.Context) -> None:
        from kubetide.cli.common.drop_in import run_in_place
        from kubetide.runtime.configuration.vpa_flags import vpa_config

        run_in_place(vpa_config(name, context.args, os.environ))

    return run


COMMANDS = {name: _command(name) for name in _WORK}

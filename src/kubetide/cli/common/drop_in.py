"""Runs loops by one of upstream's command lines, wherever upstream's program runs."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path

from kubetide.cli.common.log import log_of
from kubetide.runtime.configuration.config import RunConfig
from kubetide.runtime.configuration.run_settings import RunSettings
from kubetide.runtime.production import run_service
from kubetide.runtime.recording.folder import FolderNotWritable, claimed


def run_in_place(config: RunConfig, warnings: Iterable[str] = ()) -> None:
    """Run until SIGTERM or Ctrl-C.

    Upstream's programs write no files: where the folder of decision records cannot be written, as in a container
    with a read-only root, and no other was named, the loops run without records.

    Raises: as ``run_service``; RecordError for a folder that was named, and where another run holds it.
    """
    said = log_of(config.run.log_format)
    for warning in warnings:
        said.warn(warning)
    out = Path(config.run.out)
    folder: Path | None = out
    with ExitStack() as stack:
        try:
            stack.enter_context(claimed(out))
        except FolderNotWritable as error:
            if config.run.out != RunSettings().out:
                raise
            folder = None
            said.warn(
                f"no decision records are kept, so `kubetide explain` will have nothing to read: {error}"
            )
        run_service(config, folder, said)

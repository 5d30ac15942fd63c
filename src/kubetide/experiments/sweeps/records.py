"""Where the records of cells are written: a folder, or an object store by fsspec."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from kubetide.ports.errors import KubetideError


class RecordsError(KubetideError):
    """Records that cannot be written; the text says where and what to do."""


def keep_records(run: Path, target: str) -> None:
    """Copy the records of a run to a folder, or to a URL such as ``s3://bucket/sweep``. Raises RecordsError."""
    try:
        if "://" not in target:
            shutil.copytree(run / "records", Path(target) / "records", dirs_exist_ok=True)
            return
        url_to_fs = _fsspec()
        system, path = url_to_fs(target)
        system.makedirs(f"{path}/records", exist_ok=True)
        for file in sorted((run / "records").iterdir()):
            system.put_file(str(file), f"{path}/records/{file.name}")
    # What a store's own package raises has no common base.
    except (OSError, ValueError, ImportError, RuntimeError) as error:
        raise RecordsError(
            f"records cannot be written at {target}: {error}; choose another --records"
        ) from error


def check_target(target: str) -> None:
    """Raise RecordsError where a URL is given and fsspec is not installed."""
    if "://" in target:
        _fsspec()


def _fsspec() -> Any:
    try:
        from fsspec.core import url_to_fs  # noqa: PLC0415  an extra, imported where it is used
    except ImportError as error:
        raise RecordsError(
            "--records with a URL needs fsspec here and on the workers: pip install fsspec; or name a folder"
        ) from error
    return url_to_fs

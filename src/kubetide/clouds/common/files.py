"""The file of ``--cloud-config``."""

from __future__ import annotations

import asyncio
from pathlib import Path

from kubetide.clouds.common.ini import CloudConfigError


async def config_text(path: str) -> str:
    """Return the text of the file, empty without a path. Raises CloudConfigError."""
    if not path:
        return ""
    try:
        return await asyncio.to_thread(Path(path).read_text, "utf-8")
    except OSError as error:
        raise CloudConfigError(f"--cloud-config={path}: cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise CloudConfigError(f"--cloud-config={path}: cannot be read ({error})") from error

"""The page of ``kubetide run`` names every setting of the process, with its default."""

from __future__ import annotations

import re

from tests.docs.test_settings import DOCS

from kubetide.runtime.configuration.config import make_config
from kubetide.runtime.configuration.run_settings import RunSettings


def test_settings_and_defaults_are_those_of_the_process():
    page = (DOCS / "running.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`[a-z-]+`(?:, `[a-z-]+`)*) \| ?(.*?) \| .* \|$", page, re.MULTILINE)
    reported = {}
    for cells in rows:
        names, defaults = (re.findall(r"`([^`]+)`", cell) for cell in cells)
        reported |= dict(zip(names, defaults or [""] * len(names), strict=True))
    assert set(reported) == {name.replace("_", "-") for name in RunSettings.__struct_fields__}
    stated = {name: default for name, default in reported.items() if default}
    assert make_config([("--", stated)]).run == RunSettings()
    assert all(not getattr(RunSettings(), name.replace("-", "_")) for name in reported.keys() - stated.keys())

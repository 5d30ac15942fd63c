"""Answers for programs: JSON or YAML."""

from __future__ import annotations

import msgspec
import yaml


def structured(value: object, form: str) -> str:
    """Return a value of msgspec's types as JSON or YAML (``form``), keys in the order of their fields."""
    if form == "json":
        return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    return str(
        yaml.safe_dump(msgspec.to_builtins(value), sort_keys=False, allow_unicode=True, width=110)
    ).rstrip()

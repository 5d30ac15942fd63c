"""The messages of KEDA's external scaler protocol, built at import from ``protocol.proto`` beside this file."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from typing import Any, Final

from kubetide.clouds.externalgrpc.messages import message_types, method_types

PACKAGE: Final = "externalscaler"
SERVICE: Final = f"{PACKAGE}.ExternalScaler"


def proto_text() -> str:
    """Return the protocol as text, for other languages' generators."""
    return files(__package__).joinpath("protocol.proto").read_text(encoding="utf-8")


MESSAGES: Final[Mapping[str, Any]] = message_types(proto_text(), PACKAGE)
"""Message classes by name."""

METHODS: Final = method_types(proto_text())
"""The names of request and response by method."""

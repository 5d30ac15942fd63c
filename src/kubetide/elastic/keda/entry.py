"""ScaledObjects with external triggers, as the rest of the program knows them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import msgspec

from kubetide.elastic.keda.core import ScaledObjectsCore
from kubetide.elastic.keda.outlook import lines, names
from kubetide.elastic.keda.reasons import VOCABULARY
from kubetide.elastic.keda.roles import SCALED_OBJECT_ROLE
from kubetide.loop import Explainer, FlagError, FlagTable, LoopEntry, Parts
from kubetide.objects.kinds import SCALED_OBJECTS
from kubetide.units.time import Instant

if TYPE_CHECKING:
    from kubetide.elastic.keda.controller.controller import ScaledObjectsController


class Settings(msgspec.Struct, frozen=True):
    """The loop has no flags."""


def _make(parts: Parts, settings: Settings) -> ScaledObjectsController:
    """Raise FlagError where the libraries are not installed."""
    del settings
    try:
        module = import_module("kubetide.elastic.keda.controller.controller")
    except ImportError as error:
        raise FlagError(
            f"--controllers=scaledobjects needs {error.name}: pip install grpcio protobuf"
        ) from error
    loop: ScaledObjectsController = module.ScaledObjectsController(parts)
    return loop


def _view(loop: ScaledObjectsController, parts: Parts) -> Parts:
    return loop.view(parts)


def _lines(core: ScaledObjectsCore, subject: str, now: Instant, view: str) -> list[str]:
    del view
    return lines(core.state, subject, now)


def _names(core: ScaledObjectsCore) -> list[str]:
    return names(core.state)


ENTRY: Final[LoopEntry[Any]] = LoopEntry(
    name="scaledobjects",
    flags=FlagTable(Settings, {}),
    make=_make,
    core=ScaledObjectsCore,
    vocabulary=VOCABULARY,
    roles=(SCALED_OBJECT_ROLE,),
    explainers=(Explainer("scaledobject", _lines, _names, namespaced=True),),
    optional_kinds=(SCALED_OBJECTS,),
    view=_view,
)

"""The entry of ScaledObjects that need an HPA for the rest of the program."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from kubetide.elastic.keda.core import ALGORITHM
from kubetide.elastic.keda.outlook import lines, names
from kubetide.elastic.keda.reasons import VOCABULARY
from kubetide.elastic.keda.roles import SCALED_OBJECT_ROLE
from kubetide.loop import NO_FLAGS, Explainer, FlagError, LoopEntry, NoSettings, Parts
from kubetide.objects.kinds import DEPLOYMENTS, SCALED_OBJECTS

if TYPE_CHECKING:
    from kubetide.elastic.keda.controller.controller import ScaledObjectsController


def _make(parts: Parts, settings: NoSettings) -> ScaledObjectsController:
    """Raise FlagError where the libraries are not installed."""
    try:
        module = import_module("kubetide.elastic.keda.controller.controller")
    except ImportError as error:
        raise FlagError(
            f"--controllers=scaledobjects needs {error.name}: pip install grpcio protobuf"
        ) from error
    loop: ScaledObjectsController = module.ScaledObjectsController(parts, settings)
    return loop


def _view(loop: ScaledObjectsController, parts: Parts) -> Parts:
    return loop.view(parts)


ENTRY: Final[LoopEntry[Any]] = LoopEntry(
    name="scaledobjects",
    flags=NO_FLAGS,
    make=_make,
    core=ALGORITHM.core,
    vocabulary=VOCABULARY,
    roles=(SCALED_OBJECT_ROLE,),
    explainers=(Explainer("scaledobject", lines, names, namespaced=True),),
    optional_kinds=(SCALED_OBJECTS, DEPLOYMENTS),
    view=_view,
)

"""The field ``advanced`` of a ScaledObject: the name of its HPA, and the HPA's behavior.

Source: KEDA 2.21, apis/keda/v1alpha1/scaledobject_types, AdvancedConfig; controllers/keda/hpa: the pauses of one
direction switch it off in the behavior.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from kubetide.embedded.apiserver.defaults.defaults import defaults
from kubetide.embedded.apiserver.rules.hpa import validate_hpa
from kubetide.objects.hpa import Behavior, ScalingRules
from kubetide.objects.kinds import HPAS
from kubetide.units.names import dns1123_subdomain_errors

_CONFIG: Final = "horizontalPodAutoscalerConfig"
_AT: Final = f"advanced.{_CONFIG}"
_OFF: Final = "Disabled"


class AdvancedConfig(NamedTuple):
    """What of the field is followed, and why it is refused.

    Attributes:
        name: Of the HPA; empty for KEDA's default.
    """

    name: str = ""
    behavior: Behavior | None = None
    refused: tuple[str, ...] = ()


def read_advanced(advanced: Mapping[str, Any] | None) -> AdvancedConfig:
    """Return the parsed field; never raises."""
    said = advanced or {}
    refused = [
        f"advanced.{name}: is not read; leave it out"
        for name, value in said.items()
        if name != _CONFIG and value
    ]
    config = said.get(_CONFIG) or {}
    if not isinstance(config, dict):
        return AdvancedConfig(refused=(*refused, f"{_AT}: write name and behavior into it"))
    name = config.get("name") or ""
    if not isinstance(name, str) or (name and dns1123_subdomain_errors(name)):
        refused.append(f"{_AT}.name: {name!r} cannot be the name of an HPA")
        name = ""
    behavior = None
    try:
        behavior = msgspec.convert(config.get("behavior"), Behavior | None)
    except msgspec.ValidationError as error:
        refused.append(f"{_AT}.behavior: {error}")
    wrong = tuple(_behavior_refusals(behavior))
    return AdvancedConfig(name, None if wrong else behavior, (*refused, *wrong))


def _behavior_refusals(behavior: Behavior | None) -> Iterator[str]:
    """Yield what the API server would say of the behavior in KEDA's HPA."""
    if behavior is None:
        return
    said = msgspec.json.decode(msgspec.json.encode(behavior))
    body = defaults(HPAS, {"metadata": {}, "spec": {"behavior": said}})
    for error in validate_hpa(body):
        if error.field.startswith("spec.behavior"):
            yield f"{_AT}{str(error).removeprefix('spec')}"


def paused_in(behavior: Behavior | None) -> Behavior:
    """Return a behavior that never scales in, and is else as it was."""
    behavior = behavior or Behavior()
    return replace(behavior, scale_down=replace(behavior.scale_down or ScalingRules(), select_policy=_OFF))


def paused_out(behavior: Behavior | None) -> Behavior:
    """Return a behavior that never scales out, and is else as it was."""
    behavior = behavior or Behavior()
    return replace(behavior, scale_up=replace(behavior.scale_up or ScalingRules(), select_policy=_OFF))

"""Conditions of pods as controllers write them."""

from __future__ import annotations

from kubetide.embedded.controllers.workloads.templates import to_json
from kubetide.objects.base import Json
from kubetide.objects.meta import Condition
from kubetide.objects.pod import Pod


def conditions_with(pod: Pod, condition: Condition) -> list[Json]:
    """Return the pod's conditions with this one in the place of that of its type."""
    others = [to_json(one) for one in pod.status.conditions or () if one.type != condition.type]
    return [*others, to_json(condition)]

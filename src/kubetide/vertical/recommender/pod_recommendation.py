"""The recommendation for one pod that somebody asks about, which need not exist yet.

Source: the synchronous interface that the design of the Vertical Pod Autoscaler asks of its recommender.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from kubetide.loop import HttpReply
from kubetide.objects.base import ApiStruct
from kubetide.objects.meta import Key
from kubetide.objects.pod import Pod
from kubetide.objects.vpa import RECREATE, ContainerRecommendation, VpaStatus
from kubetide.vertical.recommender.explain import explain_vpa
from kubetide.vertical.recommender.state import State


class _OfVpa(ApiStruct, frozen=True):
    """What a VPA that selects the pod recommends for its containers, and its first line in ``kubetide explain vpa``."""

    namespace: str
    name: str
    update_mode: str
    why: str
    container_recommendations: tuple[ContainerRecommendation, ...]


class _Found(ApiStruct, frozen=True):
    recommendations: tuple[_OfVpa, ...]


class _Problem(ApiStruct, frozen=True):
    message: str


class _Kind(msgspec.Struct):
    kind: str = "Pod"


_KIND = msgspec.json.Decoder(_Kind)
_POD = msgspec.json.Decoder(Pod)
_STATUS = msgspec.json.Decoder(VpaStatus)


def answer_for_pod(state: State, decided: Mapping[Key, msgspec.Raw], body: bytes) -> HttpReply:
    """Return what is recommended for the containers of a pod, by each VPA whose selector matches its labels.

    Args:
        decided: Statuses of the last pass that are not stored yet.
        body: The pod as JSON; its labels, namespace and names of containers count.
    Returns: 400 for what is no pod, 404 where no VPA selects it.
    """
    try:
        kind = _KIND.decode(body).kind
        if kind != "Pod":
            return _problem(400, f"it is a {kind}, not a Pod")
        pod = _POD.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        return _problem(400, f"no pod as JSON: {error}")
    namespace, labels = pod.metadata.namespace or "default", pod.metadata.labels or {}
    keys = [
        key for key in sorted(state.vpas) if key[0] == namespace and state.vpas[key].selector.matches(labels)
    ]
    if not keys:
        shown = ",".join(f"{name}={value}" for name, value in sorted(labels.items())) or "none"
        return _problem(404, f"no VPA of namespace {namespace} selects a pod with these labels: {shown}")
    names = {one.name for one in pod.spec.containers or ()}
    return HttpReply(
        200, msgspec.json.encode(_Found(tuple(_of_vpa(state, decided, key, names) for key in keys)))
    )


def _of_vpa(state: State, decided: Mapping[Key, msgspec.Raw], key: Key, names: set[str]) -> _OfVpa:
    vpa = state.vpas[key]
    status = _STATUS.decode(decided[key]) if key in decided else vpa.stored.read()
    containers = (status.recommendation and status.recommendation.container_recommendations) or ()
    return _OfVpa(
        *key,
        vpa.view.mode or RECREATE,
        explain_vpa(state, *key)[0],
        tuple(one for one in containers if one.container_name in names),
    )


def _problem(status: int, message: str) -> HttpReply:
    return HttpReply(status, msgspec.json.encode(_Problem(message)))

"""Which VPA objects update pods, and which pods each of them controls."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kubetide.objects.meta import Key
from kubetide.objects.pod import Pod, is_finished
from kubetide.objects.vpa import AUTO, IN_PLACE, IN_PLACE_OR_RECREATE, RECREATE, VerticalPodAutoscaler
from kubetide.vertical.matching import Match, Target, VpaIndex, topmost_target
from kubetide.vertical.resources.boost import has_boost
from kubetide.vertical.resources.policies import update_mode
from kubetide.vertical.updater.state import State
from kubetide.vertical.workloads import owner_of

_UPDATING = frozenset({RECREATE, AUTO, IN_PLACE_OR_RECREATE, IN_PLACE})


def _say_nothing(*said: object) -> None:
    del said


def controlled_pods(
    state: State, say: Callable[..., None] = _say_nothing, *, any_mode: bool = False
) -> Iterable[tuple[VerticalPodAutoscaler, list[Pod]]]:
    """Yield the VPAs that update pods, by namespace and name, each with the live pods that it controls.

    Args:
        say: Takes reasons for VPAs that are left out.
        any_mode: Whether VPAs of all modes are yielded.
    """
    settings = state.settings
    home, ignored = settings.vpa_object_namespace, settings.ignored_vpa_object_namespaces
    chosen = []
    for key, vpa in state.vpas.items():
        if (home and key[0] != home) or key[0] in ignored:
            continue
        if not any_mode and update_mode(vpa.spec) not in _UPDATING and not has_boost(vpa.spec):
            continue
        why = _no_selector(vpa, state)
        if why:
            say("VpaWithoutTarget", None, key, why)
            continue
        chosen.append(vpa)
    if not chosen:
        say("NoVpa")
        return
    index = VpaIndex(chosen)
    found: dict[Key, tuple[VerticalPodAutoscaler, list[Pod]]] = {}
    tops: dict[tuple[str, str, str], Target | Match] = {}
    for pod in state.pods.values():
        if not is_live(pod):
            continue
        owner = owner_of(pod.metadata.owner_references)
        if owner is None:
            continue
        controller = pod.metadata.namespace, owner.kind, owner.name
        if controller not in tops:
            tops[controller] = topmost_target(pod.metadata, state.workloads)
        top = tops[controller]
        if isinstance(top, Match):
            continue
        winner = index.of_target(top, pod.metadata.labels, state.workloads).vpa
        if winner is not None:
            meta = winner.metadata
            found.setdefault((meta.namespace, meta.name), (winner, []))[1].append(pod)
    for key in sorted(found):
        yield found[key]


def is_live(pod: Pod) -> bool:
    """Return whether the pod has not ended and is not being deleted; those without a node are never gathered."""
    return not is_finished(pod) and pod.metadata.deletion_timestamp is None


def _no_selector(vpa: VerticalPodAutoscaler, state: State) -> str:
    """Return why a VPA selects no pods, empty if it does."""
    ref = vpa.spec.target_ref
    if ref is None:
        return "it has no targetRef"
    view = state.workloads.get((ref.kind, vpa.metadata.namespace, ref.name))
    if view is None:
        return f"{ref.kind} {vpa.metadata.namespace}/{ref.name} does not exist"
    if view.selector is None:
        return view.problem or f"{ref.kind} {vpa.metadata.namespace}/{ref.name} has no pod selector"
    return ""

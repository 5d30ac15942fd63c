"""Why a pod was updated, or was not: the closed vocabulary of the updater.

A reason is about a pod, a VPA or, without a subject, the whole loop; its field ``vpa`` names the VPA, ``detail``
what was seen.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kubetide.explain.reasons import Reason, Vocabulary

LOOP_SUBJECT: Final = "updater"
"""Subject of reasons that are about all pods."""


_SENTENCES: Final = {
    "CacheHeld": "{detail}: nothing is changed",
    "AdmissionStatusInvalid": "the admission controller's lease is too old: evicted pods would come back unchanged",
    "AdmissionStatusMissing": "the admission controller has no lease, evicted pods would come back unchanged: {detail}",
    "NoVpa": "no VPA object updates pods",
    "VpaWithoutTarget": "the VPA selects no pods: {detail}",
    "InPlaceGateOff": "update mode InPlace needs the feature gate InPlace",
    "NoController": "no controller would replace the pod",
    "TooFewReplicas": "{detail}; for fewer set updatePolicy.minReplicas of the VPA, or --min-replicas where it sets none",
    "ReplicasUnknown": "{detail}: how many of its pods may be down is unknown",
    "NoBudget": "as many replicas are down or being changed as eviction-tolerance allows",
    "NoGroup": "nothing replaces the pod, its group is too small, or the size of its group is unknown",
    "Pending": "the pod is Pending",
    "NoRecommendation": "there is no recommendation",
    "BadRecommendation": "the recommendation or the pod's resources cannot be read: {detail}",
    "Starting": "a container still has the CPU of its start",
    "Queued": "its requests are to change: {detail}",
    "InRangeAndYoung": "requests are within the bounds, and the pod is younger than the lifetime threshold",
    "InRangeAndSmallChange": "requests are within the bounds and closer to the target than pod-update-threshold",
    "InRangeAndNoStartTime": "requests are within the bounds, and the pod's start is unknown",
    "QuickOom": "a container was killed for its memory soon after its start",
    "QuickOomNoChange": "a container was killed for its memory, but the recommendation is what it has",
    "OutsideUpdateWindow": "now is outside of the windows in which pods may be changed",
    "UpdateWindowsUnreadable": "the annotation vertical.kubetide.io/update-windows cannot be read, so pods are not changed: {detail}",
    "EvictionsLimited": "evictions of the last minute: {detail}; the pod waits for a later loop",
    "CapacityAwaited": "it is evicted once a node has the capacity for the larger pod in its place: {detail}",
    "EvictionRequirementsNotMet": "the VPA's evictionRequirements are not met: {detail}",
    "Evicted": "the pod was evicted",
    "EvictionAdvised": "the pod would be evicted",
    "EvictionFailed": "the eviction failed: {detail}",
    "Unanswered": "its {detail} counts as made, as the API server has not answered it yet",
    "BelowMinReplicas": "its group has too few live pods for an eviction",
    "Resized": "the pod was resized in place",
    "ResizeAdvised": "the pod would be resized in place",
    "ResizeFailed": "the resize failed: {detail}",
    "ResizeWaits": "a resize of the pod is under way",
    "ResizeDeferred": "the node has no capacity for the resize now",
    "ResizeInProgress": "the kubelet is carrying the resize out",
    "ResizeError": "the kubelet failed to carry the resize out",
    "ResizeUnknown": "the resize is in a state that is not known",
    "ResizeInfeasible": "the node can never hold the resize",
    "InfeasibleBefore": "the same or a smaller resize was infeasible before",
    "RateLimited": "this loop has no time left for it: the rate limit or updater-interval ends it first",
    "Unboosted": "the start is over: the pod got its usual resources back",
    "UnboostFailed": "the start is over, but the pod did not get its usual resources back: {detail}",
}

VOCABULARY: Final = Vocabulary(
    {code: f"{{subject}}: {text}" for code, text in _SENTENCES.items()},
    actions=("Evicted", "EvictionAdvised", "Resized", "ResizeAdvised", "Unboosted"),
    fruitless=("EvictionAdvised", "ResizeAdvised"),
)


def reason(code: str, subject: str = "", *, vpa: str = "", detail: str = "") -> Reason:
    """Return a reason; fields that say nothing are left out, unless the sentence has them."""
    fields = {"vpa": vpa} if vpa else {}
    if "{detail}" in _SENTENCES[code]:
        fields["detail"] = detail
    return VOCABULARY.reason(code, subject, **fields)


def explain_pod(reasons: Iterable[Reason], subject: str, *, vpa: str = "") -> list[str]:
    """Return what the last loop found of a pod, of its VPA and of all pods, a sentence each.

    Args:
        reasons: Of the loop.
        subject: The pod, ``namespace/name``.
        vpa: Its VPA, likewise, where no reason of the pod names it.
    Returns: Nothing where the loop found nothing of the pod, and no VPA is given.
    """
    found = list(reasons)
    mine = [one for one in found if one.subject == subject]
    if not mine and not vpa:
        return []
    about = {subject, vpa, LOOP_SUBJECT, *(str(one.fields["vpa"]) for one in mine if "vpa" in one.fields)}
    return [VOCABULARY.text(one) for one in found if one.subject in about]

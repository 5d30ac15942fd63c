"""Why a pod was updated, or was not: the closed vocabulary of the updater.

A reason is about a pod, a VPA or, without a subject, the whole loop; its field ``vpa`` names the VPA, ``detail``
what was seen.
"""

from __future__ import annotations

from typing import Final

from kubetide.explain.reasons import Reason, Vocabulary

CACHE_HELD: Final = "CacheHeld"
ADMISSION_STATUS_INVALID: Final = "AdmissionStatusInvalid"
ADMISSION_STATUS_MISSING: Final = "AdmissionStatusMissing"
NO_VPA: Final = "NoVpa"
VPA_WITHOUT_TARGET: Final = "VpaWithoutTarget"
IN_PLACE_GATE_OFF: Final = "InPlaceGateOff"
NO_CONTROLLER: Final = "NoController"
TOO_FEW_REPLICAS: Final = "TooFewReplicas"
REPLICAS_UNKNOWN: Final = "ReplicasUnknown"
NO_BUDGET: Final = "NoBudget"
PENDING: Final = "Pending"
NO_RECOMMENDATION: Final = "NoRecommendation"
BAD_RECOMMENDATION: Final = "BadRecommendation"
STARTING: Final = "Starting"
QUEUED: Final = "Queued"
YOUNG: Final = "InRangeAndYoung"
SMALL_CHANGE: Final = "InRangeAndSmallChange"
NO_START_TIME: Final = "InRangeAndNoStartTime"
QUICK_OOM: Final = "QuickOom"
QUICK_OOM_NO_CHANGE: Final = "QuickOomNoChange"
REQUIREMENTS_NOT_MET: Final = "EvictionRequirementsNotMet"
EVICTED: Final = "Evicted"
EVICTION_FAILED: Final = "EvictionFailed"
BELOW_MIN_REPLICAS: Final = "BelowMinReplicas"
RESIZED: Final = "Resized"
RESIZE_FAILED: Final = "ResizeFailed"
RESIZE_WAITS: Final = "ResizeWaits"
RESIZE_DEFERRED: Final = "ResizeDeferred"
RESIZE_IN_PROGRESS: Final = "ResizeInProgress"
RESIZE_ERROR: Final = "ResizeError"
RESIZE_UNKNOWN: Final = "ResizeUnknown"
RESIZE_INFEASIBLE: Final = "ResizeInfeasible"
INFEASIBLE_BEFORE: Final = "InfeasibleBefore"
RATE_LIMITED: Final = "RateLimited"
UNBOOSTED: Final = "Unboosted"
UNBOOST_FAILED: Final = "UnboostFailed"

_SENTENCES: Final = {
    CACHE_HELD: "nothing is changed on what the caches hold",
    ADMISSION_STATUS_INVALID: "the admission controller's lease is too old: evicted pods would come back unchanged",
    ADMISSION_STATUS_MISSING: "the admission controller has no lease: evicted pods would come back unchanged",
    NO_VPA: "no VPA object updates pods",
    VPA_WITHOUT_TARGET: "the VPA's target selects no pods",
    IN_PLACE_GATE_OFF: "update mode InPlace needs the feature gate InPlace",
    NO_CONTROLLER: "no controller would replace the pod",
    TOO_FEW_REPLICAS: "its group has fewer live pods than min-replicas",
    REPLICAS_UNKNOWN: "its controller says no number of replicas",
    NO_BUDGET: "as many replicas are down or being changed as eviction-tolerance allows",
    PENDING: "the pod is Pending",
    NO_RECOMMENDATION: "there is no recommendation",
    BAD_RECOMMENDATION: "the recommendation or the pod's resources cannot be read",
    STARTING: "a container still has the CPU of its start",
    QUEUED: "the pod is to be updated",
    YOUNG: "requests are within the bounds, and the pod is younger than the lifetime threshold",
    SMALL_CHANGE: "requests are within the bounds and closer to the target than pod-update-threshold",
    NO_START_TIME: "requests are within the bounds, and the pod's start is unknown",
    QUICK_OOM: "a container was killed for its memory soon after its start",
    QUICK_OOM_NO_CHANGE: "a container was killed for its memory, but the recommendation is what it has",
    REQUIREMENTS_NOT_MET: "the VPA's evictionRequirements are not met",
    EVICTED: "the pod was evicted",
    EVICTION_FAILED: "the API server refused the eviction",
    BELOW_MIN_REPLICAS: "its group has too few live pods for an eviction",
    RESIZED: "the pod was resized in place",
    RESIZE_FAILED: "the API server refused the resize",
    RESIZE_WAITS: "a resize of the pod is under way",
    RESIZE_DEFERRED: "the node has no capacity for the resize now",
    RESIZE_IN_PROGRESS: "the kubelet is carrying the resize out",
    RESIZE_ERROR: "the kubelet failed to carry the resize out",
    RESIZE_UNKNOWN: "the resize is in a state that is not known",
    RESIZE_INFEASIBLE: "the node can never hold the resize",
    INFEASIBLE_BEFORE: "the same or a smaller resize was infeasible before",
    RATE_LIMITED: "the rate limit leaves no time in this loop",
    UNBOOSTED: "the start is over: the pod got its usual resources back",
    UNBOOST_FAILED: "the start is over, but the pod did not get its usual resources back",
}

VOCABULARY: Final = Vocabulary(
    {code: f"{{subject}}: {text}" for code, text in _SENTENCES.items()},
    actions=(EVICTED, RESIZED, UNBOOSTED),
)


def reason(code: str, subject: str = "", *, vpa: str = "", detail: str = "") -> Reason:
    """Return a reason; fields that say nothing are left out."""
    fields = {name: text for name, text in (("vpa", vpa), ("detail", detail)) if text}
    return VOCABULARY.reason(code, subject, **fields)

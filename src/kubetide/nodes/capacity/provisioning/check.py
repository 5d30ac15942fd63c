"""Whether the cluster has capacity for a ProvisioningRequest of class check-capacity.

Source: Cluster Autoscaler, provisioningrequest/checkcapacity.
"""

from __future__ import annotations

from typing import Final

import msgspec

from kubetide.nodes.capacity.provisioning.conditions import with_condition, with_detail
from kubetide.nodes.capacity.provisioning.names import (
    BOOK_PARTIAL,
    CHECK_ONLY,
    FAILED,
    FOUND_MESSAGE,
    FOUND_REASON,
    GIVEN_UP_MESSAGE,
    NO_RETRY,
    NOT_FOUND_MESSAGE,
    NOT_FOUND_REASON,
    PARTIAL_CHECK,
    PARTIAL_MESSAGE,
    PARTIAL_REASON,
    PROVISIONED,
    SCHEDULABLE_SETS,
)
from kubetide.nodes.scale_up.pending.pods import place_in_turn
from kubetide.nodes.state import State
from kubetide.objects.capacity import ProvisioningRequest
from kubetide.objects.pod import Pod
from kubetide.units.time import Instant

_PARTIAL: Final = (BOOK_PARTIAL, CHECK_ONLY)


def check(
    state: State, request: ProvisioningRequest, pods: list[list[Pod]], now: Instant
) -> tuple[ProvisioningRequest, bool]:
    """Return the request with the answer, and whether some of its pods fit.

    What fits stays on the snapshot, unless it is not booked. Only where the parameter for partial checks is set, which
    upstream does not know, a detail names the pod sets that fit.
    """
    parameters = request.spec.parameters or {}
    mode, details = parameters.get(PARTIAL_CHECK, ""), PARTIAL_CHECK in parameters
    names = [one.pod_template_ref.name for one in request.spec.pod_sets or ()]
    state.snapshot.fork()
    if mode in _PARTIAL:
        fitting = [name for name, one in zip(names, pods, strict=True) if _fits(state, one)]
    else:
        fitting = names if _fits(state, [pod for one in pods for pod in one]) else []
    whole = len(fitting) == len(names)
    if whole or (fitting and mode == BOOK_PARTIAL):
        state.snapshot.commit()
    else:
        state.snapshot.revert()
    if details:
        named = msgspec.json.encode(fitting).decode() if fitting else None
        request = with_detail(request, SCHEDULABLE_SETS, named)
    if not fitting:
        return with_no_capacity(request, now), False
    if whole:
        return with_condition(request, PROVISIONED, "True", FOUND_REASON, FOUND_MESSAGE, now), True
    message = f"{PARTIAL_MESSAGE}. Schedulable podsets: {','.join(fitting)}"
    if mode == BOOK_PARTIAL:
        return with_condition(request, PROVISIONED, "True", PARTIAL_REASON, message, now), True
    return with_condition(request, PROVISIONED, "False", PARTIAL_REASON, message, now), True


def with_no_capacity(request: ProvisioningRequest, now: Instant) -> ProvisioningRequest:
    """Return the request with the condition for no capacity: to be tried again, or failed if it asks for no retry."""
    if (request.spec.parameters or {}).get(NO_RETRY) == "true":
        return with_condition(request, FAILED, "True", NOT_FOUND_REASON, GIVEN_UP_MESSAGE, now)
    return with_condition(request, PROVISIONED, "False", NOT_FOUND_REASON, NOT_FOUND_MESSAGE, now)


def _fits(state: State, pods: list[Pod]) -> bool:
    """Place all pods, or none of them; return which."""
    state.snapshot.fork()
    placements = place_in_turn(state, pods, stop_at_failure=True)
    if len(placements.placed) == len(pods):
        state.snapshot.commit()
        return True
    state.snapshot.revert()
    return False

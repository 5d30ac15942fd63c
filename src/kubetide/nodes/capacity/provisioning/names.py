"""The contract of ProvisioningRequests: classes, conditions, reasons, messages and times, spelled exactly."""

from __future__ import annotations

from typing import Final

from kubetide.units.time import Duration, hours, minutes

CHECK_CAPACITY: Final = "check-capacity.autoscaling.x-k8s.io"
BEST_EFFORT_ATOMIC: Final = "best-effort-atomic-scale-up.autoscaling.x-k8s.io"

CONSUMES_ANNOTATION: Final = "autoscaling.x-k8s.io/consume-provisioning-request"
CLASS_ANNOTATION: Final = "autoscaling.x-k8s.io/provisioning-class-name"

ACCEPTED: Final = "Accepted"
PROVISIONED: Final = "Provisioned"
FAILED: Final = "Failed"
BOOKING_EXPIRED: Final = "BookingExpired"

PROCESSOR_INSTANCE: Final = "processorInstance"
NO_RETRY: Final = "noRetry"
PARTIAL_CHECK: Final = "partialCapacityCheck"
BOOK_PARTIAL: Final = "bookPartial"
CHECK_ONLY: Final = "checkOnly"
SCHEDULABLE_SETS: Final = "schedulablePodSets"
"""The detail that names, as a JSON list, the pod sets that fit."""

FOUND_REASON: Final = "CapacityIsFound"
NOT_FOUND_REASON: Final = "CapacityIsNotFound"
PARTIAL_REASON: Final = "PartialCapacityIsFound"
PROVISIONED_REASON: Final = "CapacityIsProvisioned"
NO_PODS_REASON: Final = "FailedToCreatePods"
NOT_BOOKED_REASON: Final = "FailedToBookCapacity"
RESERVATION_OVER_REASON: Final = "CapacityReservationTimeExpired"
CONSUMED_REASON: Final = "CapacityBookingConsumed"
EXPIRED_REASON: Final = "Expired"

ACCEPTED_MESSAGE: Final = "ProvisioningRequest is accepted by ClusterAutoscaler"
FOUND_MESSAGE: Final = "Capacity is found in the cluster"
"""Also where it was bought."""
PARTIAL_MESSAGE: Final = "Partial capacity is found in the cluster."
NOT_FOUND_MESSAGE: Final = "Capacity is not found, CA will try to find it later."
GIVEN_UP_MESSAGE: Final = "CA could not find requested capacity"
RESERVATION_OVER_MESSAGE: Final = "Capacity reservation time is expired"
CONSUMED_MESSAGE: Final = "Capacity booking consumed: all pods scheduled"
EXPIRED_MESSAGE: Final = "ProvisioningRequest is expired"

RESERVATION: Final[Duration] = minutes(10)
"""How long capacity stays booked after it was found or bought."""
EXPIRATION: Final[Duration] = hours(7 * 24)
"""A request that has found no capacity for so long has failed; one that has ended is deleted after the same time."""
MOST_UPDATED: Final = 20
"""Requests whose booking or life may end in one tick."""
MOST_EVENTS: Final = 50
"""Pods that get an event in one tick that they consume a request."""

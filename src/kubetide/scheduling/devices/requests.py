"""Requests of claims, parsed and checked: each request, or each of its alternatives, as one ``Want``.

Source: dynamic-resource-allocation v1.36, whose messages these are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kubetide.objects.resource import (
    DeviceClass,
    DeviceRequest,
    DeviceSelector,
    DeviceSubRequest,
    DeviceToleration,
    ExactDeviceRequest,
    ResourceClaim,
)
from kubetide.scheduling.devices.offers import Offer, nano
from kubetide.scheduling.devices.problems import ClaimError
from kubetide.scheduling.devices.selectors import SelectorError, compile_problem, matches
from kubetide.units.quantity import QuantityError

MAX_RESULTS = 32
"""Devices that one claim may be given."""

EXACT_COUNT, ALL = "ExactCount", "All"

_BLOCKING = ("NoSchedule", "NoExecute")


class Want:
    """One request of a claim, or one alternative of it.

    Attributes:
        request: Name of the request.
        alternative: Name within ``firstAvailable``; empty for ``exactly``.
        every: Whether all devices that match are requested.
        count: How many devices; of ``every`` known once pools are.
        admin: Whether devices in use may be had as well.
        capacity: Amounts asked for, in billionths.
    """

    def __init__(
        self,
        claim: ResourceClaim,
        request: DeviceRequest,
        given: ExactDeviceRequest | DeviceSubRequest,
        classes: Mapping[str, DeviceClass],
    ) -> None:
        self.claim_name = f"{claim.metadata.namespace}/{claim.metadata.name}"
        self.request = request.name
        self.alternative = given.name if isinstance(given, DeviceSubRequest) else ""
        where = f"claim {self.claim_name}, request {self.name}"
        self._selectors = given.selectors or ()
        for number, selector in enumerate(self._selectors):
            if selector.cel is None:
                said = "CEL expression empty (unsupported selector type?)"
                raise ClaimError(f"{where}, selector #{number}: {said}")
        if not given.device_class_name:
            raise ClaimError(f"{where}: missing device class name (unsupported request type?)")
        found = classes.get(given.device_class_name)
        if found is None:
            name = given.device_class_name
            said = f'could not retrieve device class {name}: DeviceClass "{name}" not found'
            raise ClaimError(f"{where}: {said}")
        self._class = found
        if given.allocation_mode not in {EXACT_COUNT, ALL}:
            raise ClaimError(f"{where}: unsupported count mode {given.allocation_mode}")
        self.every = given.allocation_mode == ALL
        self.count = 0 if self.every else given.count
        self.admin = isinstance(given, ExactDeviceRequest) and bool(given.admin_access)
        self._tolerations: tuple[DeviceToleration, ...] = given.tolerations or ()
        asked = (given.capacity.requests if given.capacity else None) or {}
        try:
            self.capacity = {name: nano(value) for name, value in asked.items()}
        except QuantityError as error:
            raise ClaimError(f"{where}: {error}") from None
        self._selected: dict[bytes, bool] = {}

    @property
    def name(self) -> str:
        """The name in messages: of the alternative, if there are any."""
        return self.alternative or self.request

    def selects(self, offer: Offer) -> bool:
        """Return whether class and request select a device, on any node.

        Raises: ClaimError for an expression that cannot be compiled or has no value for the device.
        """
        known = self._selected.get(offer.content)
        if known is None:
            of_class = f"class {self._class.metadata.name}"
            known = _all_match(offer, self._class.spec.selectors or (), of_class) and _all_match(
                offer, self._selectors, f"claim {self.claim_name}"
            )
            self._selected[offer.content] = known
        return known

    def tolerates(self, offer: Offer) -> bool:
        """Return whether the request tolerates all taints of the device."""
        return all(
            taint.effect not in _BLOCKING
            or any(_tolerates(one, taint.key, taint.value, taint.effect) for one in self._tolerations)
            for taint in offer.device.taints or ()
        )


def read_requests(
    claim: ResourceClaim, classes: Mapping[str, DeviceClass], settle: Callable[[Want], None]
) -> list[tuple[Want, ...]]:
    """Return the alternatives of each request of a claim.

    Args:
        claim: The claim.
        classes: All device classes, by name.
        settle: Called with each want as soon as it is read, before the next one is.

    Raises: ClaimError with upstream's message about the first thing that is wrong.
    """
    found: list[tuple[Want, ...]] = []
    for request in claim.spec.devices.requests or ():
        given: tuple[ExactDeviceRequest | DeviceSubRequest, ...] = request.first_available or ()
        wants: list[Want] = []
        for one in given or (request.exactly or ExactDeviceRequest(),):
            want = Want(claim, request, one, classes)
            settle(want)
            wants.append(want)
        found.append(tuple(wants))
    return found


def _all_match(offer: Offer, selectors: tuple[DeviceSelector, ...], whose: str) -> bool:
    for number, selector in enumerate(selectors):
        expression = selector.cel.expression if selector.cel else ""
        problem = compile_problem(expression)
        if problem:
            raise ClaimError(f"{whose}: selector #{number}: CEL compile error: {problem}")
        variables = offer.variables
        try:
            if isinstance(variables, str):
                raise SelectorError(variables)  # noqa: TRY301  # reported like what an expression raises
            if not matches(expression, variables):
                return False
        except SelectorError as error:
            raise ClaimError(f"{whose}: selector #{number}: CEL runtime error: {error}") from None
    return True


def _tolerates(toleration: DeviceToleration, key: str, value: str, effect: str) -> bool:
    if (toleration.effect and toleration.effect != effect) or (toleration.key and toleration.key != key):
        return False
    if toleration.operator == "Exists":
        return True
    return toleration.operator in {"", "Equal"} and toleration.value == value

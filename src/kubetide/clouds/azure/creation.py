"""Scale sets that can be created: like a pattern, with another size, in one of its zones.

A set is a pattern when it has the tag ``kubetide.dev_create`` (Azure forbids ``/`` in tags), whose value names sizes,
separated by spaces. Azure shows neither custom data, nor protected settings of extensions, nor passwords to anybody, so
a pattern must do without: its machines join by user data or by an image of its owner's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Final

import msgspec

from kubetide.acting.parallel import in_parallel
from kubetide.clouds.azure.api import ComputeApi
from kubetide.clouds.azure.copying import CREATE_TAG, CREATED_TAG, model_like
from kubetide.clouds.azure.model import MachineProfile, ScaleSet, SetExtension
from kubetide.clouds.azure.skus import InstanceType, find_type
from kubetide.clouds.azure.template import NO_ZONE, zones_of
from kubetide.clouds.common.creation import (
    HAS_NO_MAXIMUM,
    Candidate,
    candidate_name,
    copying,
    make_candidate,
    name_is_taken,
    pattern_warnings,
    types_in,
    unlike_architecture,
    unreadable,
)
from kubetide.clouds.common.rest import converted_without_nulls
from kubetide.objects.base import Json
from kubetide.ports.cloud import NodeGroup
from kubetide.ports.errors import CloudError
from kubetide.units.time import minutes

CALLED: Final = "a scale set"
_AT_ONCE = 8
_NO_LIMIT = -1
_CREATION_IN_ALL = minutes(5)
_LONGEST_NAME = 60
"""Names of sets have 64 characters; a caller may append some."""


def types_to_create(scale_set: ScaleSet) -> tuple[str, ...]:
    """Return the sizes that the set is a pattern for, each once; none where it is no pattern."""
    return types_in((scale_set.tags or {}).get(CREATE_TAG))


def pattern_of(scale_set: ScaleSet) -> str | None:
    """Return the name of the pattern that the set was created from; None where this program did not create it."""
    return (scale_set.tags or {}).get(CREATED_TAG)


def warnings_of(
    scale_set: ScaleSet, obstacle: str, types: Mapping[str, InstanceType] | None
) -> tuple[str, ...]:
    """Return what keeps a pattern, or some of its sizes, from being of use."""
    asked = types_to_create(scale_set)
    if not asked:
        return ()
    known = {name for name in asked if _arch(name, types)}
    return tuple(
        pattern_warnings(f"tag {CREATE_TAG}", asked, obstacle, known, _unfit(scale_set, asked, types))
    )


def _unfit(
    scale_set: ScaleSet, asked: Iterable[str], types: Mapping[str, InstanceType] | None
) -> dict[str, str]:
    own = _arch(scale_set.size, types)
    reasons = {name: unlike_architecture(own, _arch(name, types)) for name in asked}
    return {name: reason for name, reason in reasons.items() if reason}


def _arch(name: str, types: Mapping[str, InstanceType] | None) -> str:
    """Return the architecture of a size, empty for one that is not known."""
    try:
        return find_type(name, types).arch
    except CloudError:
        return ""


def obstacle_of(model: Json, max_size: int) -> str:
    """Return why no set can be created like this one, empty where one can.

    Args:
        model: The pattern as Azure describes it, with its user data.
        max_size: Its maximum size.
    """
    scale_set = read_model(model)
    properties = scale_set.properties
    profile = properties.virtual_machine_profile or MachineProfile()
    found = {
        "AKS manages it; tag a scale set that you manage yourself": _is_of_aks(scale_set),
        HAS_NO_MAXIMUM: max_size < 1,
        "it mixes sizes; give it one": properties.sku_profile is not None,
        "it is on dedicated hosts, which take one family of sizes": properties.host_group is not None,
        "its machines come from a capacity reservation, which is for their size": profile.capacity_reservation
        is not None,
        "its machines use a part of their size's CPUs, and others have other numbers": bool(
            (profile.hardware_profile or {}).get("vmSizeProperties")
        ),
        "its spot machines have a maximum price, which is for their size": (
            (profile.billing_profile and profile.billing_profile.max_price) or _NO_LIMIT
        )
        != _NO_LIMIT,
        "its machines sign in as the scale set, and a new one would have no rights; give it a user-assigned identity": (
            "systemassigned" in ((scale_set.identity and scale_set.identity.type) or "").lower()
        ),
        "its machines have a password, which Azure does not show; let them have SSH keys only": _has_password(
            profile
        ),
        "its custom script is in protected settings, which Azure does not show; put it into its settings": any(
            _is_hidden_script(one)
            for one in (profile.extension_profile and profile.extension_profile.extensions) or ()
        ),
        "Azure shows neither user data nor an image of your own by which its machines join; "
        "put the custom data, which it does not show, into user data": not _joins_visibly(profile),
    }
    return next((text for text, holds in found.items() if holds), "")


def _is_of_aks(scale_set: ScaleSet) -> bool:
    tags = scale_set.tags or {}
    return any(key.lower().startswith("aks-managed") for key in tags) or (
        tags.get("creationSource") or ""
    ).startswith("vmssclient-aks")


def _has_password(profile: MachineProfile) -> bool:
    system = profile.os_profile
    if system is None:
        return False
    linux = system.linux_configuration
    return linux is None or not linux.disable_password_authentication


def _is_hidden_script(extension: SetExtension) -> bool:
    properties = extension.properties
    is_script = (properties.type or "").lower().startswith("customscript")
    has_script = {"commandToExecute", "script"} & (properties.settings or {}).keys()
    return is_script and not has_script and properties.protected_settings_from_key_vault is None


def _joins_visibly(profile: MachineProfile) -> bool:
    image = profile.storage_profile.image_reference if profile.storage_profile else None
    return bool(profile.user_data) or (
        image is not None
        and bool(image.id or image.shared_gallery_image_id or image.community_gallery_image_id)
    )


def read_model(model: Json) -> ScaleSet:
    """Return a set as far as the provider reads it. Raises CloudError."""
    try:
        return converted_without_nulls(model, ScaleSet)
    except msgspec.ValidationError as error:
        raise CloudError(str(error)) from error


async def create(api: ComputeApi, name: str, model: Json) -> None:
    """Create a set; what is left of one that could not be made is deleted. Raises CloudError."""
    try:
        operation = await api.create_set(name, model)
    except CloudError as error:
        if error.error_code in {"PreconditionFailed", "412"}:
            raise name_is_taken(name, CALLED, error.error_code) from error
        raise
    failure = await api.operation_error(operation, within=_CREATION_IN_ALL) if operation else None
    if failure is not None:
        with suppress(CloudError):
            await api.delete_set(name)
        raise failure


class Patterns:
    """The sets that others may be like, as Azure describes them; each is read again when it changed.

    Args:
        api: The calls.
    """

    def __init__(self, api: ComputeApi) -> None:
        self._api = api
        self._models: dict[str, Json] = {}
        self._errors: dict[str, str] = {}

    async def read(self, sets: Mapping[str, ScaleSet]) -> None:
        """Read those of the sets that are patterns, by key, and forget all others."""
        patterns = {key: one for key, one in sets.items() if types_to_create(one)}
        self._models = {key: model for key, model in self._models.items() if key in patterns}
        self._errors = {}
        changed = [key for key in sorted(patterns) if not self._is_current(key, patterns[key])]

        async def one(key: str) -> None:
            try:
                model = {**await self._api.model(patterns[key].name), "name": patterns[key].name}
                read_model(model)
                with copying(f"the scale set {key}"):
                    model_like(model, name=key, size="", zone=NO_ZONE, max_size=0)
                self._models[key] = model
            except CloudError as error:
                self._errors[key] = f"it {unreadable(error)}"

        await in_parallel(changed, one, limit=_AT_ONCE)

    def _is_current(self, key: str, scale_set: ScaleSet) -> bool:
        return bool(scale_set.etag) and (self._models.get(key) or {}).get("etag") == scale_set.etag

    def obstacle(self, key: str, max_size: int) -> str:
        """Return why no set can be created like this one, empty where one can."""
        if key in self._errors or key not in self._models:
            return self._errors.get(key, "it is no pattern")
        return obstacle_of(self._models[key], max_size)

    def candidates(
        self,
        key: str,
        max_size: int,
        types: Mapping[str, InstanceType] | None,
        view: Callable[[ScaleSet], NodeGroup],
    ) -> Iterator[Candidate | None]:
        """Yield the sets that could be created like one; ``view`` returns what the loop is shown of a set."""
        if self.obstacle(key, max_size):
            return
        pattern = read_model(self._models[key])
        asked = types_to_create(pattern)
        unfit = _unfit(pattern, asked, types)
        for size in [one for one in asked if one not in unfit]:
            for zone in zones_of(pattern) or (NO_ZONE,):
                name = candidate_name(pattern.name, size, zone, longest=_LONGEST_NAME)
                model = self.model_like(key, name=name, size=size, zone=zone, max_size=max_size)
                yield make_candidate(
                    key,
                    view(read_model(model)),
                    group_id=name,
                    max_size=max_size,
                    instance_type=size,
                    zone=zone,
                )

    def model_like(self, key: str, *, name: str, size: str, zone: str, max_size: int) -> Json:
        """Return the model of a set like one; arguments as ``model_like``."""
        return model_like(self._models[key], name=name, size=size, zone=zone, max_size=max_size)

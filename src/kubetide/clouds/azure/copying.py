"""The model of a scale set like another: all that Azure shows of that one, with another size in one of its zones."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from kubetide.clouds.azure.tags import RESOURCES
from kubetide.clouds.azure.template import NO_ZONE
from kubetide.clouds.common.creation import CREATE, CREATED, shortened
from kubetide.objects.base import Json

CREATE_TAG: Final = CREATE.replace("/", "_")
CREATED_TAG: Final = CREATED.replace("/", "_")

_LONGEST_PREFIX = 54
"""Names of nodes have 63 characters, and Azure appends a number to the prefix."""
_STORAGE = f"{RESOURCES}ephemeral-storage"
_COPIED: Final = ("location", "plan", "extendedLocation")
_OWN_PROPERTIES: Final = {"provisioningState", "uniqueId", "timeCreated", "zoneBalance"}
"""What Azure sets itself, and what holds for sets of several zones only."""
_NO_HOST: Final = re.compile(r"[^a-z0-9-]+")


def model_like(model: Json, *, name: str, size: str, zone: str, max_size: int) -> Json:
    """Return the model of a set like the pattern.

    Args:
        model: The pattern as Azure describes it, with its user data.
        name: The name of the new set.
        size: The size of its machines.
        zone: Where they are, as nodes name it.
        max_size: Its maximum size.
    """
    made: Json = {key: model[key] for key in _COPIED if model.get(key) is not None}
    if zone != NO_ZONE:
        made["zones"] = [zone.rpartition("-")[2]]
    identity = model.get("identity") or {}
    if identity.get("userAssignedIdentities"):
        named: Json = {key: {} for key in identity["userAssignedIdentities"]}
        made["identity"] = {"type": identity.get("type") or "UserAssigned", "userAssignedIdentities": named}
    shown: Json = model.get("properties") or {}
    properties = {key: value for key, value in shown.items() if key not in _OWN_PROPERTIES}
    if properties.get("virtualMachineProfile"):
        properties["virtualMachineProfile"] = _profile(properties["virtualMachineProfile"], name)
    tags = _tags(model.get("tags") or {})
    return {
        **made,
        "name": name,
        "sku": {"name": size, "tier": (model.get("sku") or {}).get("tier") or "Standard", "capacity": 0},
        "tags": {**tags, CREATED_TAG: model["name"], "min": "0", "max": str(max_size)},
        "properties": properties,
    }


def _profile(profile: Json, name: str) -> Json:
    made = {key: value for key, value in profile.items() if key != "timeCreated"}
    if made.get("osProfile"):
        # Two sets whose machines had one prefix would have nodes of one name.
        prefix = shortened(_NO_HOST.sub("-", name.lower()), _LONGEST_PREFIX)
        made["osProfile"] = {**made["osProfile"], "computerNamePrefix": prefix}
    storage = made.get("storageProfile") or {}
    if storage.get("imageReference"):
        image = {key: value for key, value in storage["imageReference"].items() if key != "exactVersion"}
        made["storageProfile"] = {**storage, "imageReference": image}
    extensions = (made.get("extensionProfile") or {}).get("extensions")
    if extensions:
        made["extensionProfile"] = {
            **made["extensionProfile"],
            "extensions": [_extension(one) for one in extensions],
        }
    return made


def _extension(extension: Json) -> Json:
    properties = extension.get("properties") or {}
    left = {key: value for key, value in properties.items() if key != "provisioningState"}
    return {"name": extension.get("name"), "properties": left}


def _tags(tags: Mapping[str, str | None]) -> Json:
    """Return the pattern's tags without those that are of its own or of its size of machine."""
    return {
        key: value
        for key, value in tags.items()
        if key not in {CREATE_TAG, CREATED_TAG} and (RESOURCES not in key or key == _STORAGE)
    }

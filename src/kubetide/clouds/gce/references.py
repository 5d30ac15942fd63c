"""How Compute Engine names things: URLs of groups, instances and templates; provider ids of nodes."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import unquote

from kubetide.ports.errors import CloudError

ROOT = "https://www.googleapis.com/compute/v1"
"""Root of the ids that groups go by, whatever host their URL named."""

_SCHEME = "gce://"
_URL = re.compile(r"https://.*projects/([^/]*)/zones/([^/]*)/(instanceGroups|instances)/([^/]*)")
_MANAGER = re.compile(
    r"(?:https://.*/|)projects/([^/]*)/(?:zones|regions)/([^/]*)/instanceGroupManagers/([^/]*)"
)
_REGIONAL_TEMPLATE = re.compile(r"/projects/.*[A-Za-z0-9]+.*/regions/")


class GceRef(NamedTuple):
    """A group, a manager or an instance of one zone."""

    project: str = ""
    zone: str = ""
    name: str = ""

    def __str__(self) -> str:
        return f"{self.project}/{self.zone}/{self.name}"


def parse_group_url(url: str) -> GceRef:
    """Return the zonal group that an instance group's URL names. Raises CloudError."""
    return _parse_url(url, "instanceGroups")


def parse_instance_url(url: str) -> GceRef:
    """Return the instance that its URL names. Raises CloudError."""
    return _parse_url(url, "instances")


def _parse_url(url: str, resource: str) -> GceRef:
    found = _URL.fullmatch(url)
    if found is None or found[3] != resource:
        raise CloudError(
            f"wrong url: expected format https://.*/projects/<project-id>/zones/<zone>/{resource}/<name>, got {url}"
        )
    return GceRef(found[1], found[2], found[4])


def parse_manager_url(url: str, project: str) -> GceRef:
    """Return the group that made an instance, from its ``created-by``; an empty reference if it is no group.

    Metadata names the project by its number, so ``project`` takes its place.
    """
    found = _MANAGER.fullmatch(url)
    return GceRef(project, found[2], found[3]) if found else GceRef()


def group_id(ref: GceRef, root: str = ROOT) -> str:
    """Return the id of a node group: its instance group's URL."""
    return f"{root}/projects/{ref.project}/zones/{ref.zone}/instanceGroups/{ref.name}"


def instance_url(ref: GceRef, root: str = ROOT) -> str:
    """Return the URL of an instance, as requests name it."""
    return f"{root}/projects/{ref.project}/zones/{ref.zone}/instances/{ref.name}"


def provider_id(ref: GceRef) -> str:
    """Return what a joined node has as ``spec.providerID``."""
    return f"{_SCHEME}{ref}"


def parse_provider_id(text: str) -> GceRef:
    """Return the instance of a node's provider id. Raises CloudError.

    Upstream drops the first six characters without looking at them; the ids of other clouds that
    have three parts behind these are read the same way here, shorter texts are refused.
    """
    parts = text[len(_SCHEME) :].split("/") if len(text) >= len(_SCHEME) else []
    if len(parts) != 3:
        raise CloudError(f"wrong id: expected format gce://<project-id>/<zone>/<name>, got {text}")
    return GceRef(*parts)


class TemplateRef(NamedTuple):
    """An instance template, global or of a region."""

    name: str
    is_regional: bool = False


def parse_template_url(url: str) -> TemplateRef:
    """Return the template that a group's ``instanceTemplate`` names; the name keeps its escapes."""
    path = re.sub(r"^[a-z]+://[^/]*", "", url)
    return TemplateRef(path.rpartition("/")[2], _REGIONAL_TEMPLATE.search(unquote(path)) is not None)


def last_part(url: str) -> str:
    """Return what stands behind the last slash, such as a zone's name."""
    return url.rpartition("/")[2]


def region_of(zone: str) -> str:
    """Return the zone's region: ``us-central1-b`` is in ``us-central1``. Raises CloudError."""
    region, dash, _ = zone.rpartition("-")
    if not dash:
        raise CloudError(f"unexpected zone: {zone}")
    return region

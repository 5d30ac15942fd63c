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
_REGIONAL_GROUP = re.compile(r"https://.*projects/([^/]*)/regions/([^/]*)/instanceGroups/([^/]*)")
_MANAGER = re.compile(
    r"(?:https://.*/|)projects/([^/]*)/(zones|regions)/([^/]*)/instanceGroupManagers/([^/]*)"
)
_REGIONAL_TEMPLATE = re.compile(r"/projects/.*[A-Za-z0-9]+.*/regions/")


class Scope(NamedTuple):
    """Where groups are: a zone, or a region where ``is_regional``."""

    project: str
    location: str
    is_regional: bool = False

    @property
    def path(self) -> str:
        """How requests begin that are about what is there."""
        return f"projects/{self.project}/{'regions' if self.is_regional else 'zones'}/{self.location}"

    def named(self, name: str) -> GceRef:
        """Return what is here under a name."""
        return GceRef(self.project, self.location, name, self.is_regional)


class GceRef(NamedTuple):
    """An instance or a group of a zone, or, where ``is_regional``, a group of a region."""

    project: str = ""
    location: str = ""
    name: str = ""
    is_regional: bool = False

    def __str__(self) -> str:
        return f"{self.project}/{self.location}/{self.name}"

    @property
    def scope(self) -> Scope:
        """The zone or region."""
        return Scope(self.project, self.location, self.is_regional)

    @property
    def region(self) -> str:
        """The region, for a zone the one that it is in. Raises CloudError."""
        return self.location if self.is_regional else region_of(self.location)

    def may_hold(self, instance: GceRef) -> bool:
        """Return whether an instance of the group can be where this one is."""
        # The id of a node may be anything.
        where = instance.location.rpartition("-")[0] if self.is_regional else instance.location
        return (instance.project, where) == (self.project, self.location)


def parse_group_url(url: str) -> GceRef:
    """Return the group that an instance group's URL names. Raises CloudError, in upstream's words."""
    regional = _REGIONAL_GROUP.fullmatch(url)
    if regional is None:
        return _parse_url(url, "instanceGroups")
    return GceRef(regional[1], regional[2], regional[3], is_regional=True)


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
    return GceRef(project, found[3], found[4], found[2] == "regions") if found else GceRef()


def group_id(ref: GceRef, root: str = ROOT) -> str:
    """Return the id of a node group: its instance group's URL."""
    return f"{root}/{ref.scope.path}/instanceGroups/{ref.name}"


def instance_url(ref: GceRef, root: str = ROOT) -> str:
    """Return the URL of an instance, as requests name it."""
    return f"{root}/{ref.scope.path}/instances/{ref.name}"


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
    project, zone, name = parts
    return GceRef(project, zone, name)


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

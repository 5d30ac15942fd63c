"""Node groups that are created like a pattern: what the clouds share.

How a machine joins a cluster cannot be guessed. So a person marks a group that does it right as a pattern, with the
names of instance types, and what is created is like it but for the type. What is created remembers its pattern.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Final, NamedTuple

from msgspec.structs import replace

from kubetide.ports.cloud import GroupCandidate, NewGroup, NodeGroup
from kubetide.ports.errors import CloudError
from kubetide.units.seeds import name_suffix

CREATE: Final = "kubetide.dev/create"
"""The tag of a pattern: names of instance types, separated by spaces."""
CREATED: Final = "kubetide.dev/created-from"
"""The tag of a group that was created: the name of its pattern."""

HAS_NO_MAXIMUM: Final = "its maximum size is 0, and theirs would be, too"
"""What keeps a pattern with that maximum from being of use."""

_NO_CODE: Final = CloudError("").error_code
"""The code of an error for which the cloud has none."""
_SUFFIX: Final = 6


class Candidate(NamedTuple):
    """A group that could be created, and the id of the pattern that it would be like."""

    pattern: str
    offered: GroupCandidate


def types_in(text: str | None) -> tuple[str, ...]:
    """Return the instance types that a pattern's mark names, each once; none where there is no mark."""
    return tuple(dict.fromkeys((text or "").split()))


def pattern_warnings(
    mark: str,
    asked: Sequence[str],
    obstacle: str,
    known: Container[str],
    unfit: Mapping[str, str] = MappingProxyType({}),
) -> list[str]:
    """Return what keeps a pattern, or some of its instance types, from being of use.

    Args:
        mark: What a person marked the pattern with, such as ``tag kubetide.dev/create``.
        asked: The types that the mark names; a group without is no pattern.
        obstacle: Why no group can be created like it; empty where one can.
        known: The types that there are.
        unfit: Why some of these are of no use to this pattern.
    """
    if asked and obstacle:
        return [f"{mark}: no group can be created like this one: {obstacle}"]
    return [
        f"{mark}: instance type {name} is left out: {unfit[name]}"
        if name in unfit
        else f"{mark}: instance type {name} is not known; correct it"
        for name in asked
        if name in unfit or name not in known
    ]


def unreadable(error: CloudError) -> str:
    """Return that something cannot be read, and why, in the same words each time: texts of refusals name requests."""
    code = "" if error.error_code == _NO_CODE else error.error_code
    return f"cannot be read: {code or error}"


@contextmanager
def copying(what: str) -> Iterator[None]:
    """Raise CloudError where a model that the cloud shows lacks what its API promises, or has it in another form.

    Models are copied whole, so no type says what is in them.
    """
    try:
        yield
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise CloudError(
            f"{what} cannot be copied, as the cloud shows it otherwise than its API says: {error!r}"
        ) from error


def unlike_architecture(own: str, other: str) -> str:
    """Return why a type cannot run what the pattern's machines do; empty where it can, or where that is not known."""
    return f"it is {other}, and the pattern's machines are {own}" if own and other and own != other else ""


def candidate_name(pattern: str, instance_type: str, zone: str = "", *, longest: int | None = None) -> str:
    """Return the name of the group that would be created, no longer than the cloud allows."""
    name = "-".join(part for part in ("auto", pattern, instance_type.replace(".", "-"), zone) if part)
    return name if longest is None else shortened(name, longest)


def shortened(name: str, longest: int) -> str:
    """Return the name; where it is longer than that, its end is a hash of the whole."""
    if len(name) <= longest:
        return name
    return f"{name[: longest - _SUFFIX].rstrip('-_.')}-{name_suffix(0, name)}"


def make_candidate(
    pattern: str, would_be: NodeGroup, *, group_id: str, max_size: int, instance_type: str, zone: str
) -> Candidate | None:
    """Return the candidate, None where it is not known what its nodes would look like.

    Args:
        pattern: Id of the pattern.
        would_be: Template, options and offerings of the group that would be created.
        group_id: Its id.
        max_size: Its maximum size.
        instance_type: The type of its machines.
        zone: Where they are.
    """
    if would_be.template is None:
        return None
    new = NewGroup(id=group_id, max_size=max_size, instance_type=instance_type, zones=(zone,))
    if would_be.offerings and all(one.market == "spot" for one in would_be.offerings):
        new = replace(new, market="spot")
    group = replace(would_be, id=group_id, min_size=0, max_size=max_size, exists=False, autoprovisioned=True)
    return Candidate(pattern, GroupCandidate(new=new, group=group, takes_labels=False))


def in_order(found: Iterable[Candidate | None]) -> tuple[Candidate, ...]:
    """Return the candidates, ordered by id."""
    return tuple(sorted((one for one in found if one is not None), key=lambda one: one.offered.new.id))


def pattern_for(candidates: Sequence[Candidate], group: NewGroup, *, taken: bool, called: str) -> str:
    """Return the id of the pattern that a group which is to be created is like. Raises CloudError.

    Args:
        candidates: The groups that could be created.
        group: What is asked for, under the id of one of them or a longer one.
        taken: Whether there is a group of this name, whoever made it.
        called: What the cloud calls a group, with its article.
    """
    meant = next((one for one in candidates if _is_meant(one.offered.new, group)), None)
    if meant is None:
        places = ", ".join(group.zones or ())
        raise CloudError(f"node group {group.id}: no pattern for {group.instance_type} in {places}")
    if taken:
        raise name_is_taken(group.id, called)
    if group.labels:
        raise CloudError(f"node group {group.id}: labels are those of the pattern; none can be added")
    return meant.pattern


def name_is_taken(group_id: str, called: str, code: str = "") -> CloudError:
    """Return the error that there is a group of this name, whoever made it; ``called`` as in ``pattern_for``."""
    return CloudError(f"node group {group_id}: there is {called} of this name already", error_code=code)


def made_group(groups: Iterable[NodeGroup], group_id: str) -> NodeGroup:
    """Return the group that was just created. Raises CloudError where the cloud does not list it yet."""
    found = next((one for one in groups if one.id == group_id), None)
    if found is None:
        raise CloudError(f"node group {group_id}: it was created, and the cloud does not list it yet")
    return found


def check_deletion(group_id: str, *, is_ours: bool, is_empty: bool) -> None:
    """Raise CloudError unless this program created the group, nobody named it since, and it has no machines."""
    if not is_ours:
        raise CloudError(
            f"node group {group_id}: another made it, or --nodes names it; only what this program created is deleted"
        )
    if not is_empty:
        raise CloudError(f"node group {group_id}: it has machines; it can be deleted once it is empty")


def _is_meant(candidate: NewGroup, group: NewGroup) -> bool:
    same = (candidate.instance_type, candidate.zones) == (group.instance_type, group.zones)
    return same and (group.id == candidate.id or group.id.startswith(f"{candidate.id}-"))

"""Which groups belong to the autoscaler: ``--node-group-auto-discovery=mig:namePrefix=P,min=N,max=M``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from kubetide.clouds.common.discovery import pairs_of
from kubetide.clouds.common.node_spec import NodeSpec, NodeSpecError, check_node_spec
from kubetide.objects.base import ApiStruct
from kubetide.ports.errors import CloudError
from kubetide.units.numbers import NumberError, parse_integer
from kubetide.units.regex import PatternError, compile_pattern

_KEYS = "namePrefix, min, max"


class GroupDiscovery(ApiStruct):
    """Groups whose names match ``name_regexp`` (RE2), and their bounds."""

    name_regexp: str
    min_size: int = 0
    max_size: int = 0

    @property
    def filter(self) -> str:
        """The API's filter on names."""
        return f"name eq {self.name_regexp}"

    def takes(self, name: str) -> bool:
        """Return whether the filter lets a group of this name through."""
        return compile_pattern(f"^(?:{self.name_regexp})$").find(name) is not None


class Bounds(NamedTuple):
    """Bounds of a group: whether ``--nodes`` names it (``is_explicit``), and whether ``create_group`` made it (``is_ours``)."""

    least: int
    most: int
    is_explicit: bool
    is_ours: bool = False


def most_found(name: str, specs: Iterable[GroupDiscovery]) -> int | None:
    """Return the maximum of the first spec that lets a group of this name through, None where none does."""
    return next((one.max_size for one in specs if one.takes(name)), None)


def parse_discovery(spec: str) -> GroupDiscovery:
    """Return what one discovery spec asks for. Raises CloudError that quotes the wrong part.

    A later key wins over an earlier one. ``max`` is required in effect: it must be 1 or more.

    Source: cluster-autoscaler cloudprovider/gce, ``--node-group-auto-discovery``.
    """
    prefix, least, most = "", 0, 0
    for key, value in pairs_of(spec, "mig"):
        if key == "namePrefix":
            _check_prefix(value)
            prefix = value
        elif key == "min":
            least = _integer(value, "minimum")
        elif key == "max":
            most = _integer(value, "maximum")
        else:
            raise CloudError(
                f'unsupported key "{key}" is specified for discoverer "mig". Supported keys are "{_KEYS}"'
            )
    if not prefix:
        raise CloudError("empty instance group name prefix supplied")
    if least > most:
        raise CloudError(f"minimum size {least} is greater than maximum size {most}")
    if most < 1:
        raise CloudError(f"maximum size {most} must be at least 1")
    pattern = f"^{prefix}.+"
    return GroupDiscovery(name_regexp=pattern, min_size=least, max_size=most)


def check_found(spec: GroupDiscovery) -> None:
    """Raise CloudError where no group that was found can have the bounds of the spec: its minimum is below 0."""
    try:
        check_node_spec(NodeSpec(spec.name_regexp, spec.min_size, spec.max_size))
    except NodeSpecError as error:
        raise CloudError(f"groups named {spec.name_regexp}: {error}") from error


def _check_prefix(prefix: str) -> None:
    """Raise CloudError where the prefix makes no regular expression of RE2."""
    pattern = f"^{prefix}.+"
    try:
        compile_pattern(pattern)
    except PatternError as error:
        raise CloudError(
            f'invalid instance group name prefix "{prefix}" - "{pattern}" must be a valid RE2 regexp'
        ) from error


def _integer(text: str, what: str) -> int:
    try:
        return parse_integer(text)
    except NumberError as error:
        raise CloudError(f"invalid {what} nodes: {text}") from error

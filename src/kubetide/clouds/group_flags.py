"""The forms of ``--nodes`` and ``--node-group-auto-discovery``, by provider; what is wrong is named with flag, value and form.

Each provider reads its own flags. Nothing of its SDK is loaded here, so a command line can be checked before anything is
opened.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, NamedTuple, cast

from kubetide.ports.errors import KubetideError


class _Form(NamedTuple):
    """The form of a flag's values: what reads one of them, as ``module:function`` of this package, and how it is written."""

    reader: str
    text: str


_ANY_NAME: Final = "common.node_spec:parse_node_spec"
_NODES: Final[Mapping[str, _Form]] = {
    "alicloud": _Form(_ANY_NAME, "MIN:MAX:ID of a scaling group, such as 1:10:asg-2ze4x"),
    "aws": _Form(_ANY_NAME, "MIN:MAX:NAME of an Auto Scaling group, such as 1:10:workers"),
    "azure": _Form(_ANY_NAME, "MIN:MAX:NAME of a scale set, such as 1:10:workers"),
    "gce": _Form(
        "gce.settings:parse_node",
        "MIN:MAX:URL of an instance group, such as "
        "1:10:https://www.googleapis.com/compute/v1/projects/PROJECT/zones/ZONE/instanceGroups/NAME",
    ),
    "labels": _Form(_ANY_NAME, "MIN:MAX:NAME, such as 1:10:workers"),
    "tencentcloud": _Form(_ANY_NAME, "MIN:MAX:ID of a scaling group, such as 1:10:asg-nu7s2yq9"),
}
_DISCOVERY: Final[Mapping[str, _Form]] = {
    "aws": _Form("aws.discovery:parse_discovery", "asg:tag=KEY[=VALUE], with commas between several tags"),
    "azure": _Form("azure.discovery:parse_discovery", "label:TAG=VALUE[,TAG=VALUE…][,min=MIN][,max=MAX]"),
    "gce": _Form("gce.discovery:parse_discovery", "mig:namePrefix=PREFIX,min=MIN,max=MAX"),
}


def group_problems(provider: str, nodes: Iterable[str], discovery: Iterable[str]) -> Iterator[str]:
    """Yield a sentence for each value that a provider cannot read; a provider of another package reads its own.

    Args:
        provider: Its name.
        nodes: Each ``--nodes``.
        discovery: Each ``--node-group-auto-discovery``.
    """
    yield from _problems("nodes", nodes, _NODES.get(provider))
    yield from _problems("node-group-auto-discovery", discovery, _DISCOVERY.get(provider))


def _problems(flag: str, texts: Iterable[str], form: _Form | None) -> Iterator[str]:
    if form is None:
        return
    for text in texts:
        try:
            _reader(form.reader)(text)
        except (KubetideError, ValueError) as error:
            yield f"--{flag}={text}: {error}; give {form.text}"


def _reader(place: str) -> Callable[[str], object]:
    module, _, function = place.partition(":")
    return cast(
        "Callable[[str], object]", getattr(importlib.import_module(f"kubetide.clouds.{module}"), function)
    )

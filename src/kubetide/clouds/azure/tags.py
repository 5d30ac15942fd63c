"""What tags of a scale set say of its nodes. Azure forbids ``/`` in tags: ``_`` stands for it, ``~2`` for ``_``.

Source: cluster-autoscaler cloudprovider/azure, node templates.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from kubetide.clouds.common.tag_problems import tag_problems
from kubetide.clouds.common.template import readable_quantities, readable_taints, taint_of
from kubetide.objects.node import Taint
from kubetide.units.quantity import Quantity

Tags = Mapping[str, str | None]
_PREFIX = "k8s.io_cluster-autoscaler_node-template_"
OWN = "kubetide.dev_"
"""How the tags begin that are this program's alone, and no labels of nodes."""
RESOURCES = f"{_PREFIX}resources_"
_TAINT = re.compile(r"[^=]+=([^=]+)?:(?:NoSchedule|NoExecute|PreferNoSchedule)")


def _of_kind(tags: Tags, kind: str) -> Iterator[tuple[str, str]]:
    """Yield (key as written, value) of all tags of one kind; a tag without a value has an empty one."""
    for tag in sorted(tags):
        parts = tag.split(f"{_PREFIX}{kind}_")
        if len(parts) > 1:
            yield parts[1], tags[tag] or ""


def _label_key(text: str) -> str:
    return text.replace("_", "/").replace("~2", "_")


def labels(tags: Tags) -> dict[str, str]:
    """Return the node labels that tags give."""
    return {_label_key(key): value for key, value in _of_kind(tags, "label") if key}


def taints(tags: Tags) -> tuple[Taint, ...]:
    """Return the node taints that tags give, ``value:Effect``; other values are left out."""
    return readable_taints((_label_key(key), value) for key, value in _of_kind(tags, "taint"))


def parse_taints(text: str) -> tuple[Taint, ...]:
    """Return the taints of ``key=value:Effect,…``; what is no taint is left out."""
    found = (one.partition("=") for one in dict.fromkeys(text.split(",")) if _TAINT.match(one))
    return tuple(taint_of(key, value) for key, _, value in found)


def resources(tags: Tags) -> dict[str, Quantity]:
    """Return the further resources that tags give; what is no quantity is left out."""
    found = ((key.replace("~2", "/").replace("_", "/"), value) for key, value in _of_kind(tags, "resources"))
    return readable_quantities((key, value) for key, value in found if key)


def problems(tags: Tags, options: Sequence[str]) -> tuple[str, ...]:
    """Return one sentence for each tag that says nothing that is read; ``options`` are those that are."""
    given = ((tag, tags[tag] or "") for tag in sorted(tags))
    return tag_problems(given, prefix=_PREFIX, options=options, slash="_")


def raw_options(tags: Tags) -> dict[str, str]:
    """Return the autoscaling options as lower-case texts by name as written; only these tags must begin so."""
    ours = {tag: value for tag, value in tags.items() if tag.startswith(_PREFIX)}
    return {key: value.lower() for key, value in _of_kind(ours, "autoscaling-options") if key}

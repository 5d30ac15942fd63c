"""Labels of a node selector that no group has, while a group has one that is spelled nearly so."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from msgspec.structs import replace

from kubetide.nodes.explain.waiting.group_changes import SET_BY_THE_CLOUD
from kubetide.nodes.explain.waiting.pod_changes import Change, Changed
from kubetide.objects.pod import Pod

_SEPARATORS: Final = re.compile("[-_./]")
_LEAST: Final = 5
"""In shorter words another letter makes another word: ``cpu`` and ``gpu``."""


def spell_selector(pod: Pod, labels: Mapping[str, str], known: Iterable[Mapping[str, str]]) -> Changed | None:
    """Return the pod with the misspelt labels of its ``nodeSelector`` as the group has them; None if none is misspelt.

    Args:
        labels: Of the group's new nodes.
        known: The labels of new nodes of all groups; what one of them has is spelled as it is meant.
    """
    selector = pod.spec.node_selector or {}
    meant = {pair for one in known for pair in one.items()}
    changed, parts = dict(selector), []
    for key, value in sorted(selector.items()):
        if (key, value) in meant:
            continue
        near = _near(
            key, value, {name: text for name, text in labels.items() if name not in selector or name == key}
        )
        if near is not None:
            del changed[key]
            changed[near[0]] = near[1]
            parts.append(f"write {near[0]}={near[1]} in place of {key}={value}")
    if not parts:
        return None
    text = f"{' and '.join(parts)} in the pod's node selector"
    return replace(pod, spec=replace(pod.spec, node_selector=changed)), Change("spelling", text)


def _near(key: str, value: str, labels: Mapping[str, str]) -> tuple[str, str] | None:
    # Values that the cloud sets are near each other as they are: zone-a and zone-b, amd64 and arm64.
    if key in labels:
        near = key not in SET_BY_THE_CLOUD and is_slip(value, labels[key])
        return (key, labels[key]) if near else None
    found = (name for name, text in sorted(labels.items()) if text == value and is_slip(key, name))
    return next(((name, value) for name in found), None)


def is_slip(written: str, meant: str) -> bool:
    """Return whether a text is likely another with one slip: a letter too many, too few or wrong, or two swapped.

    A digit or the first letter of a word tells names apart (``gen1``, ``team-a``, ``xlarge``), as does any letter of a
    short word; its case and what stands between words do not.
    """
    if written == meant:
        return False
    one, other = written.lower(), meant.lower()
    if _SEPARATORS.sub("", one) == _SEPARATORS.sub("", other):
        return True
    words, others = _SEPARATORS.split(one), _SEPARATORS.split(other)
    if len(words) != len(others):
        return False
    different = [pair for pair in zip(words, others, strict=True) if pair[0] != pair[1]]
    return len(different) == 1 and _is_slip_of_a_word(*different[0])


def _is_slip_of_a_word(written: str, meant: str) -> bool:
    if min(len(written), len(meant)) < 2 or written[0] != meant[0]:
        return False
    letters = enumerate(zip(written, meant, strict=False))
    start = next((at for at, (one, other) in letters if one != other), min(len(written), len(meant)))
    rest, other = written[start:], meant[start:]
    if any(char.isdigit() for char in (rest[:1] + other[:1])):
        return False
    swapped = rest[:2] == other[:2][::-1] and rest[2:] == other[2:]
    too_many, too_few = rest[1:] == other, rest == other[1:]
    wrong = rest[1:] == other[1:] and len(meant) >= _LEAST
    return swapped or too_many or too_few or wrong

"""What is wrong with a group's own tags about its new nodes; upstream says nothing of it, on any cloud."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from kubetide.units.quantity import quantity_error

_EFFECTS: Final = ("NoSchedule", "NoExecute", "PreferNoSchedule")
_KINDS: Final = ("label", "taint", "resources", "autoscaling-options")


def tag_problems(
    tags: Iterable[tuple[str, str]], *, prefix: str, options: Sequence[str], slash: str = "/"
) -> tuple[str, ...]:
    """Return one sentence for each tag that is not what the cloud's provider reads.

    As upstream, the prefix of a label, taint or resource may stand anywhere in a tag's key, that of an option only once
    and at its beginning.

    Args:
        tags: Keys and values.
        prefix: How keys begin that are about new nodes.
        options: The options that the provider reads; none where it reads none.
        slash: What stands for ``/`` in the cloud's tags.
    """
    return tuple(
        f"tag {key}: {problem}"
        for key, value in tags
        for problem in _problems(key, value, prefix, options, slash)
    )


def _problems(key: str, value: str, prefix: str, options: Sequence[str], slash: str) -> Iterator[str]:
    label, taint, resource, option = (f"{prefix}{kind}{slash}" for kind in _KINDS)
    if taint in key:
        yield from _of_taint(value)
    if key.partition(resource)[2] and (refusal := quantity_error(value)) is not None:
        yield f"{refusal}; ignored"
    name = key.removeprefix(option) if key.startswith(option) else ""
    if name and option not in name and name not in options:
        known = f"use one of {', '.join(options)}" if options else "none is read of this cloud's tags"
        yield f"no option {name}; {known}"
    if key.startswith(prefix) and not any(kind in key for kind in (label, taint, resource, option)):
        kinds = ", ".join(f"{kind}{slash}" for kind in _KINDS)
        yield f"says nothing; after {prefix} goes one of {kinds}"


def _of_taint(value: str) -> Iterator[str]:
    # The effect must occur behind some colon, yet the first colon ends the taint's value, as upstream has it.
    if not any(f":{effect}" in value for effect in _EFFECTS):
        yield f"{value!r} is not <value>:<effect> with one of {', '.join(_EFFECTS)}; ignored"
        return
    effect = value.partition(":")[2]
    if effect not in _EFFECTS:
        yield f"{effect!r} is not an effect; use one of {', '.join(_EFFECTS)}"

"""Specs of pods of one owner: as a rule they differ in the node and in the name of the token's volume alone.

So the bytes of a spec are compared with those of a sibling, its own node and token in their places. Where they are the
same, the struct is the sibling's but for these two; and for the affinity, which names the node in pods of a DaemonSet.
What a place holds does not determine how the rest is read: a token's name takes the place of one as long, and node and
affinity are fields of the spec itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from kubetide.objects.meta import OwnerReference
from kubetide.objects.pod import Affinity, Container, PodSpec, Volume, VolumeMount

_TOKEN_NAME = b"\n\x15kube-api-access-"
"""What the token's volume begins with: the tag of its name, and the length of one that ends in five drawn letters.

Source: kube-apiserver v1.36, admission of service accounts.
"""
_TAG = 2
_NAME = _TOKEN_NAME[1]
_NODE_TAG = b"R"
_AFFINITY_TAG = b"\x92\x01"
_ONE_BYTE = 0x80
"""Lengths below it are one byte."""
_MOST_OWNERS = 1_000
"""Of which a spec is known; as many again that have not been asked for since then are cached beside them."""
_LONGEST = 16 << 10
"""Bytes of a spec that may be cached."""
_PATIENCE = 4


class _Mounts(NamedTuple):
    """The mounts of a container: before and after that of the token."""

    before: tuple[VolumeMount, ...]
    after: tuple[VolumeMount, ...]


_Containers = tuple[tuple[Container, _Mounts | None], ...] | None


class _Bearers(NamedTuple):
    """Where a struct holds the name of the token's volume.

    Attributes:
        volumes: Those before it, itself, and those after it.
        mount: Of the token; the same in every container.
        containers: Each with its mounts, None for one that has not the token.
        init_containers: Likewise.
    """

    volumes: tuple[tuple[Volume, ...], Volume, tuple[Volume, ...]]
    mount: VolumeMount
    containers: _Containers
    init_containers: _Containers


class _Known(NamedTuple):
    """A spec that was read, and where in its bytes node and token stand.

    Attributes:
        head: What comes before the node's name and its length, cut where the token's name stands.
        middle: What comes between node and affinity, cut likewise; without an affinity all that is left.
        tail: What comes after the affinity, cut likewise; None without one.
        token_at: Where the token's name stands first, where there is one.
        node_at: Where the length of the node's name stands.
    """

    spec: PodSpec
    head: list[bytes]
    middle: list[bytes]
    tail: list[bytes] | None
    token_at: int
    node_at: int
    bearers: _Bearers | None


class _Seen(NamedTuple):
    """The first spec of an owner: what is in its bytes is looked for when there is a second one."""

    piece: bytes
    spec: PodSpec


class Specs:
    """Reads the specs of pods.

    Args:
        read: Reads one by itself.
        texts: Texts that many objects have, by their bytes.
        affinities: Likewise.
    """

    def __init__(
        self,
        read: Callable[[bytes], PodSpec],
        *,
        texts: Mapping[bytes, Any],
        affinities: Mapping[bytes, Affinity | None],
    ) -> None:
        self._read = read
        self._texts = texts
        self._affinities = affinities
        # Two tables as those of ``Recent``, so that the first is asked in one step: this is done for every pod.
        self._known: dict[str, _Known | _Seen | None] = {}
        self._older: dict[str, _Known | _Seen | None] = {}
        self._strangers: dict[str, int] = {}
        """How many specs of an owner were not like the known one, since it is known."""

    def read(self, piece: bytes, owners: tuple[OwnerReference, ...] | None) -> PodSpec:
        """Return a spec; much of it may be shared with others, so nobody may change it."""
        if not owners or len(piece) > _LONGEST:
            return self._read(piece)
        owner = owners[0].uid
        known = self._known.get(owner)
        if known is None and owner in self._older:
            known = self._older.pop(owner)
            self._keep(owner, known)
        if isinstance(known, _Seen):
            known = self._known[owner] = _known_of(known.piece, known.spec)
        if known is not None and (found := self._like(known, piece)) is not None:
            return found
        return self._new(owner, piece)

    def _like(self, known: _Known, piece: bytes) -> PodSpec | None:
        """Return the spec, where it is like the known one."""
        token_at, node_at = known.token_at, known.node_at
        token = piece[token_at : token_at + _NAME]
        if not piece.startswith(token.join(known.head)):
            return None
        begin = node_at + 1
        end = begin + piece[node_at] if node_at < len(piece) else begin
        node = piece[begin:end]
        if known.tail is None:
            if piece[end:] != token.join(known.middle):
                return None
            affinity = known.spec.affinity
        else:
            middle = token.join(known.middle)
            if not piece.startswith(middle, end):
                return None
            begin, end = _content(piece, end + len(middle))
            if piece[end:] != token.join(known.tail):
                return None
            affinity = self._affinities[piece[begin:end]]
        name = self._texts[node]
        if known.bearers is None:
            return replace(known.spec, node_name=name, affinity=affinity)
        return _made(known.spec, known.bearers, name, affinity, token.decode())

    def _new(self, owner: str, piece: bytes) -> PodSpec:
        """Read a spec by itself, the first of its owner or one that is not like the known one."""
        spec = self._read(piece)
        strangers = self._strangers.get(owner, 0)
        if owner in self._known and strangers < _PATIENCE:
            self._strangers[owner] = strangers + 1
            return spec
        self._keep(owner, _Seen(piece, spec))
        self._strangers[owner] = 0
        return spec

    def _keep(self, owner: str, known: _Known | _Seen | None) -> None:
        if len(self._known) >= _MOST_OWNERS and owner not in self._known:
            self._older, self._known = self._known, {}
            self._strangers = {one: self._strangers.get(one, 0) for one in self._older}
        self._known[owner] = known


def _content(piece: bytes, at: int) -> tuple[int, int]:
    """Return where the content begins and ends whose length stands there; nothing for one of over 16 KiB."""
    first, second = (*piece[at : at + 2], 0, 0)[:2]
    if first < _ONE_BYTE:
        return at + 1, at + 1 + first
    return at + 2, at + 2 + (first - _ONE_BYTE + (second << 7) if second < _ONE_BYTE else 0)


def _made(known: PodSpec, bearers: _Bearers, node: str, affinity: Affinity | None, token: str) -> PodSpec:
    """Return the known spec with another node, affinity and token."""
    before, volume, after = bearers.volumes
    mount = replace(bearers.mount, name=token)
    return replace(
        known,
        node_name=node,
        affinity=affinity,
        volumes=(*before, replace(volume, name=token), *after),
        containers=_mounting(bearers.containers, mount),
        init_containers=_mounting(bearers.init_containers, mount),
    )


def _mounting(containers: _Containers, mount: VolumeMount) -> tuple[Container, ...] | None:
    if containers is None:
        return None
    return tuple(
        [
            container
            if mounts is None
            else replace(container, volume_mounts=(*mounts.before, mount, *mounts.after))
            for container, mounts in containers
        ]
    )


# ── What is noted of a spec ─────────────────────────────────────────────────────────────────────


def _known_of(piece: bytes, spec: PodSpec) -> _Known | None:
    """Return what others are compared with, None where it is not certain what node and token stand for."""
    node = spec.node_name.encode()
    if len(node) >= _ONE_BYTE:
        return None
    field = _NODE_TAG + bytes([len(node)]) + node
    if piece.count(field) != 1:
        return None
    node_at = piece.index(field) + len(_NODE_TAG)
    head, after = piece[:node_at], piece[node_at + 1 + len(node) :]
    middle, tail = after, None
    if spec.affinity is not None:
        if after.count(_AFFINITY_TAG) != 1:
            return None
        at = after.index(_AFFINITY_TAG) + len(_AFFINITY_TAG)
        middle, tail = after[:at], after[_content(after, at)[1] :]
    found = head.find(_TOKEN_NAME)
    if found < 0:
        return _Known(spec, [head], [middle], None if tail is None else [tail], 0, node_at, None)
    token_at = found + _TAG
    token = head[token_at : token_at + _NAME]
    bearers = _bearers(spec, token)
    if bearers is None:
        return None
    cut = (head.split(token), middle.split(token), None if tail is None else tail.split(token))
    return _Known(spec, *cut, token_at, node_at, bearers)


def _bearers(spec: PodSpec, token: bytes) -> _Bearers | None:
    """Find all that bear the name, None for one that is borne otherwise than by a volume and by mounts of it."""
    name = token.decode()
    volumes = spec.volumes or ()
    named = [number for number, one in enumerate(volumes) if one.name == name]
    containers, init_containers = _bearing(spec.containers, name), _bearing(spec.init_containers, name)
    bearing = [one for one, mounts in (*(containers or ()), *(init_containers or ())) if mounts is not None]
    mounts = [one for container in bearing for one in container.volume_mounts or () if one.name == name]
    said = msgspec.json.encode(spec).count(token)
    if len(named) != 1 or len(mounts) != len(bearing) or said != len(mounts) + 1:
        return None
    if any(one != mounts[0] for one in mounts):
        return None
    (at,) = named
    mount = mounts[0] if mounts else VolumeMount(name=name)
    return _Bearers((volumes[:at], volumes[at], volumes[at + 1 :]), mount, containers, init_containers)


def _bearing(containers: tuple[Container, ...] | None, name: str) -> _Containers:
    return None if containers is None else tuple((one, _mounts(one, name)) for one in containers)


def _mounts(container: Container, name: str) -> _Mounts | None:
    mounts = container.volume_mounts or ()
    for number, one in enumerate(mounts):
        if one.name == name:
            return _Mounts(mounts[:number], mounts[number + 1 :])
    return None

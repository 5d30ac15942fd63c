"""Persisted state: a log of every write in a folder, so that a store can be brought back after a crash.

One file a generation, ``state-N.jsonl``: first everything there was when it was begun, then a line
that says so, then one line for each write, in order. A line is a CRC-32 and JSON. A generation that
has grown long is followed by a new one, which is written aside and renamed when it is whole.

A write is in the log before it is in the store, so before any watch sends it: killed at any byte,
what comes back is all that was acknowledged and at most one write more. A torn last line is cut off
and named; a broken line before whole ones is damage, not a crash, and refused.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

import msgspec

from kubetide.embedded.apiserver.store.revision import Revision
from kubetide.embedded.apiserver.store.store import Store
from kubetide.objects.base import Json
from kubetide.objects.meta import Key
from kubetide.ports.errors import InternalError, KubetideError
from kubetide.units.time import Instant

__all__ = ["Journal", "JournalError", "Restored"]

_CHECK = 9  # eight hexadecimal digits and a blank
_encoder = msgspec.json.Encoder()


class JournalError(KubetideError):
    """A folder of persisted state that cannot be used; the text names the file and the fix."""


class Restored(NamedTuple):
    """What a folder held when it was opened.

    Attributes:
        version: The newest that was given to anybody, 0 for a new folder.
        objects: (resource, key, JSON) of every object.
        parts: What others keep beside the store, by name.
        now: The time of the newest line, None for a new folder.
        starts: How often the folder has been opened before.
        cut: What was wrong with the end of the file, empty when nothing was.
    """

    version: int
    objects: tuple[tuple[str, Key, Json], ...]
    parts: dict[str, Json]
    now: Instant | None
    starts: int
    cut: str

    @property
    def is_new(self) -> bool:
        """Whether there was nothing before."""
        return self.now is None


class _Line(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line: an object as written (``object``), removed (without), a part, or a mark."""

    version: int = 0
    at: int = 0
    resource: str = ""
    namespace: str = ""
    name: str = ""
    object: Json | None = None
    part: str = ""
    value: Json | None = None
    begun: int = 0
    """Of the line after everything there was: the number of this start."""


class _Contents:
    """What the lines of a file come to."""

    def __init__(self) -> None:
        self.version = 0
        self.at = 0
        self.starts = 0
        self.objects: dict[tuple[str, Key], Json] = {}
        self.parts: dict[str, Json] = {}

    def take(self, line: _Line) -> None:
        self.version = max(self.version, line.version)
        self.at = max(self.at, line.at)
        self.starts = max(self.starts, line.begun)
        if line.part:
            self.parts[line.part] = line.value or {}
        elif line.resource:
            place = line.resource, (line.namespace, line.name)
            if line.object is None:
                self.objects.pop(place, None)
            else:
                self.objects[place] = line.object

    def lines(self) -> Iterator[_Line]:
        for (resource, key), json in self.objects.items():
            yield _object_line(resource, key, json, 0, 0)
        for name, value in self.parts.items():
            yield _Line(part=name, value=value)


class Journal:
    """The log of one folder. Open it, ``attach`` a store, and close it at the end.

    Args of ``open``:
        folder: Made if it is not there; nobody else may use it at the same time.
        to_disk: Waits for the disk at each write. Without, a write survives the end of the process
            but not that of the machine.
        longest: How many lines may follow the beginning of a generation.
    """

    def __init__(
        self,
        folder: Path,
        contents: _Contents,
        restored: Restored,
        *,
        lock: int,
        generation: int,
        to_disk: bool,
        longest: int,
    ) -> None:
        self.restored = restored
        self._folder = folder
        self._now: Callable[[], Instant] = lambda: Instant(contents.at)
        self._to_disk = to_disk
        self._longest = longest
        self._lock = lock
        self._contents = contents
        self._generation = generation
        self._file = -1
        self._length = 0
        self._failure = ""
        self._begin()

    @classmethod
    def open(cls, folder: Path, *, to_disk: bool = False, longest: int = 50_000) -> Journal:
        """Read what the folder holds and begins a new generation. Raises JournalError."""
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                _hold(lock, folder)
                found = _generations(folder)
                contents, cut = _read(folder / _name(found[-1])) if found else (_Contents(), "")
                restored = Restored(
                    version=contents.version,
                    objects=tuple(
                        (resource, key, json) for (resource, key), json in contents.objects.items()
                    ),
                    parts=dict(contents.parts),
                    now=Instant(contents.at) if found and contents.starts else None,
                    starts=contents.starts,
                    cut=cut,
                )
                contents.starts += 1
                return cls(
                    folder,
                    contents,
                    restored,
                    lock=lock,
                    generation=found[-1] if found else 0,
                    to_disk=to_disk,
                    longest=longest,
                )
            except BaseException:
                os.close(lock)
                raise
        except OSError as error:
            raise JournalError(f"{folder}: cannot be used: {error.strerror}; check the path") from error

    def forget(self) -> None:
        """Drop all that was persisted, as if the folder were new. Raises OSError."""
        starts = self._contents.starts
        self._contents = _Contents()
        self._contents.starts = starts
        self._begin()
        self.restored = Restored(0, (), {}, None, starts - 1, "")

    def attach(self, store: Store, now: Callable[[], Instant]) -> None:
        """Put everything back into an empty store, and logs its writes from now on.

        ``now`` is asked for the time that is noted with every line. Raises JournalError.
        """
        self._now = now
        try:
            store.restore(self.restored.version, self.restored.objects)
        except (KubetideError, msgspec.ValidationError) as error:
            raise JournalError(
                f"{self._folder}: holds an object that this version cannot read: {error}; "
                "use the version that wrote it, or another folder"
            ) from error
        store.before_write = self._write
        store.before_version = self._note_version

    def keep(self, part: str, value: Json) -> None:
        """Persist something beside the store, in place of what was stored under that name. Raises InternalError."""
        if self._contents.parts.get(part) != value:
            self._append(_Line(part=part, value=value, at=self._now()))

    def mark_time(self) -> None:
        """Note how late it is. Raises InternalError."""
        self._append(_Line(at=self._now()))

    def close(self) -> None:
        """End the log; what was written is on the disk then."""
        if self._file >= 0:
            os.fsync(self._file)
            os.close(self._file)
            os.close(self._lock)
            self._file = -1

    def _write(self, resource: str, new: Revision, *, removed: bool) -> None:
        json = None if removed else new.json
        self._append(_object_line(resource, new.key, json, new.version, self._now()))

    def _note_version(self, version: int) -> None:
        self._append(_Line(version=version, at=self._now()))

    def _append(self, line: _Line) -> None:
        if self._file < 0:
            raise InternalError("the log of persisted state is closed: nothing can be written any more")
        if self._failure:
            raise InternalError(self._failure)
        try:
            _write_all(self._file, _encoded(line))
            if self._to_disk:
                os.fsync(self._file)
            self._contents.take(line)
            self._length += 1
            if self._length > max(self._longest, 2 * len(self._contents.objects)):
                self._begin()
        except OSError as error:
            # A write that may be in the log and is not in the store: nothing may follow it.
            self._failure = (
                f"{self._folder}: the log of persisted state cannot be written: {error.strerror}; start again"
            )
            raise InternalError(self._failure) from error

    def _begin(self) -> None:
        """Begin a new generation with all that there is, and drop the one before."""
        former, former_file = self._generation, self._file
        self._generation += 1
        path = self._folder / _name(self._generation)
        aside = path.with_suffix(".new")
        file = os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        contents = self._contents
        contents.at = max(contents.at, self._now())
        mark = _Line(version=contents.version, at=contents.at, begun=contents.starts)
        try:
            _write_all(file, b"".join(map(_encoded, (*contents.lines(), mark))))
            os.fsync(file)
            aside.rename(path)
            _sync_folder(self._folder)
        except BaseException:
            os.close(file)
            raise
        self._file, self._length = file, 0
        if former_file >= 0:
            os.close(former_file)
        (self._folder / _name(former)).unlink(missing_ok=True)


def _object_line(resource: str, key: Key, json: Json | None, version: int, at: int) -> _Line:
    return _Line(version=version, at=at, resource=resource, namespace=key[0], name=key[1], object=json)


def _name(generation: int) -> str:
    return f"state-{generation}.jsonl"


def _hold(lock: int, folder: Path) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise JournalError(
            f"{folder}: another process keeps its state there; end it, or use another folder"
        ) from error


def _generations(folder: Path) -> list[int]:
    """Return the generations that are whole, the oldest first."""
    found = []
    for path in folder.glob("state-*.jsonl"):
        number = path.stem.removeprefix("state-")
        if number.isascii() and number.isdigit():
            found.append(int(number))
    return sorted(found)


def _encoded(line: _Line) -> bytes:
    data = _encoder.encode(line)
    return b"%08x %s\n" % (crc32(data), data)


def _write_all(file: int, data: bytes) -> None:
    while data:
        data = data[os.write(file, data) :]


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _read(path: Path) -> tuple[_Contents, str]:
    """Return the content of a file, and what was cut off its end. Raises JournalError for damage."""
    contents = _Contents()
    lines = path.read_bytes().split(b"\n")
    whole = [_decoded(line) for line in lines[:-1]]
    tail = len(lines[-1])
    good = next((at for at, line in enumerate(whole) if line is None), len(whole))
    if any(line is not None for line in whole[good:]):
        raise JournalError(
            f"{path}: line {good + 1} is damaged and whole lines follow it: it was changed by other hands "
            "or the disk fails; restore the file from a copy, or use another folder"
        )
    for line in whole[:good]:
        assert line is not None  # ``good`` is the first that is
        contents.take(line)
    if not contents.starts:
        raise JournalError(f"{path}: its beginning is missing; restore the file from a copy")
    cut = tail + sum(len(line) + 1 for line in lines[good:-1])
    return contents, f"{path}: cut {cut} bytes of an unfinished write after line {good}" if cut else ""


def _decoded(data: bytes) -> _Line | None:
    """Return the line, None when it is not whole."""
    if data[8:_CHECK] != b" " or data[:8] != b"%08x" % crc32(data[_CHECK:]):
        return None
    return msgspec.json.decode(data[_CHECK:], type=_Line)

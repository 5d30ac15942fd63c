"""How far a soak has come, in a file, so that one that was stopped goes on where it was."""

from __future__ import annotations

from pathlib import Path

import msgspec


class Progress(msgspec.Struct, kw_only=True):
    """The runs of one soak: those from ``seed`` to before ``following`` are played; ``failed`` names the seeds that were wrong."""

    seed: int
    minutes: int
    following: int
    failed: tuple[int, ...] = ()


def taken_up(path: Path, seed: int, minutes: int) -> Progress:
    """Return how far the soak of this seed has come; a file that is of another one, or cannot be read, is begun anew."""
    begun = Progress(seed=seed, minutes=minutes, following=seed)
    try:
        known = msgspec.json.decode(path.read_bytes(), type=Progress)
    except (OSError, msgspec.MsgspecError):
        return begun
    same = (known.seed, known.minutes) == (seed, minutes) and known.following >= seed
    return known if same else begun


def save(path: Path, progress: Progress) -> None:
    """Write how far it has come; a stop in between leaves the file as it was."""
    path.parent.mkdir(parents=True, exist_ok=True)
    written = path.with_suffix(".new")
    written.write_bytes(msgspec.json.encode(progress))
    written.replace(path)

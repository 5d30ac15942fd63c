"""The persisted state of a live run: the cluster's store and its cloud's machines, in one folder."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Self

from kubetide.embedded.apiserver.store import Store
from kubetide.embedded.apiserver.store.journal import Journal
from kubetide.objects.base import Json
from kubetide.ports.clock import Clock
from kubetide.simulate.scenarios.spec import ScenarioError
from kubetide.units.time import Instant, format_rfc3339

_MACHINES = "machines"
_RUN = "run"
_PLAYGROUND = "playground"


class PersistedRun:
    """One folder of persisted state, for one scenario; a context manager that closes it.

    Args:
        folder: Where the state is stored; made if it is not there.
        scenario: The name of the scenario; a folder belongs to one.
        end: When the run is to end.

    Raises: JournalError when the folder cannot be used, ScenarioError when it holds another
        scenario or the run has ended.
    """

    def __init__(self, folder: Path, scenario: str, end: Instant) -> None:
        self._journal = Journal.open(folder)
        self._scenario = scenario
        self.cut = self._journal.restored.cut
        """What was cut off the end of the log, empty when nothing was."""
        if _RUN not in self._journal.restored.parts:
            # A first start that was interrupted before the cluster stood has nothing worth keeping.
            self._journal.forget()
            return
        restored = self._journal.restored
        stored = restored.parts[_RUN].get("scenario")
        if stored != scenario:
            self._journal.close()
            raise ScenarioError(f"{folder}: holds scenario {stored}, not {scenario}; use another folder")
        if restored.now is not None and restored.now >= end:
            self._journal.close()
            raise ScenarioError(
                f"{folder}: the stored run is at {format_rfc3339(restored.now)}, and its end is "
                f"{format_rfc3339(end)}; give a later --until, or another folder"
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._journal.close()

    @property
    def is_new(self) -> bool:
        """Whether the run begins, instead of resuming."""
        return self._journal.restored.is_new

    @property
    def resumes_at(self) -> Instant | None:
        """When the state was last written, None for a new run."""
        return self._journal.restored.now

    @property
    def machines(self) -> Json | None:
        """The machines of the cloud, None for a new run."""
        return self._journal.restored.parts.get(_MACHINES)

    def seed_of(self, seed: int) -> int:
        """Return the seed of this start: it repeats no names and uids of an earlier start."""
        return seed + (self._journal.restored.starts << 32)

    def attach(self, store: Store, clock: Clock) -> None:
        """Restore the stored state, and store all writes from now on. Raises JournalError."""
        self._journal.attach(store, clock.now)

    def keep_machines(self, machines: Json) -> None:
        """Store the present machines."""
        self._journal.keep(_MACHINES, machines)

    @property
    def playground(self) -> Json | None:
        """The stored changes of a person, None if there are none."""
        return self._journal.restored.parts.get(_PLAYGROUND)

    def keep_playground(self, changed: Json) -> None:
        """Store the changes of a person. Raises ApiError if that fails."""
        self._journal.keep(_PLAYGROUND, changed)

    def note_begun(self) -> None:
        """Note that the cluster is set up: later starts resume from the stored state."""
        self._journal.keep(_RUN, {"scenario": self._scenario})

    def mark_time(self) -> None:
        """Store the present time."""
        self._journal.mark_time()

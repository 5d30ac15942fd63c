"""Cells on an existing Dask cluster: its scheduler hands them out, and tries those of a worker that died elsewhere."""

from __future__ import annotations

import pydoc
from collections.abc import Iterable, Iterator
from typing import Any, Final, Self

import msgspec

from kubetide import __version__
from kubetide.experiments.sweeps.cell import Outcome, other_version, run_cell
from kubetide.ports.errors import KubetideError

_TIMEOUT: Final = "10s"
"""For a scheduler to answer."""
_AHEAD: Final = 2
"""Cells that wait at the scheduler, for each thread that runs one."""


class DaskError(KubetideError):
    """A Dask cluster that cannot be used; the text says why and what to do."""


class DaskWorkers:
    """The workers of a Dask scheduler. Use it as a context manager.

    Raises: DaskError where the package or the scheduler is not there, or where workers have another kubetide.
    """

    def __init__(self, address: str) -> None:
        try:
            import distributed  # noqa: PLC0415  an extra, imported where it is used
        except ImportError as error:
            raise DaskError(
                f"--dask needs the package distributed ({error}): pip install 'distributed>=2026.3'"
            ) from error
        self._address = address
        self._dask: Any = distributed
        try:
            self._client: Any = distributed.Client(address, timeout=_TIMEOUT, set_as_default=False)
        except (OSError, ValueError) as error:
            raise DaskError(
                f"no Dask scheduler answers at {address}: {error}; start one with `dask scheduler`, or check the address"
            ) from error
        try:
            self._check_versions()
        except DaskError:
            self._client.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def _check_versions(self) -> None:
        # A function of the standard library, so that a worker with any kubetide, or none, can answer.
        found: dict[str, str | None] = self._client.run(pydoc.locate, "kubetide.__version__")
        for worker, version in sorted(found.items()):
            if version is None:
                raise DaskError(
                    f"Dask worker {worker} has no kubetide: install kubetide {__version__} in its environment"
                )
            if version != __version__:
                raise DaskError(f"Dask worker {worker} is refused: {other_version(version, __version__)}")

    def run(self, tasks: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
        """Yield the number of each task and its outcome, in the order in which they are done.

        Raises: DaskError where the scheduler is lost.
        """
        numbers: dict[str, int] = {}
        coming = iter(enumerate(tasks))
        done = self._dask.as_completed(loop=self._client.loop)
        self._submit(coming, numbers, done)
        for future in done:
            number = numbers.pop(future.key)
            outcome = self._outcome(future)
            future.release()
            self._submit(coming, numbers, done)
            yield number, outcome

    def _submit(self, coming: Iterator[tuple[int, bytes]], numbers: dict[str, int], done: Any) -> None:
        most = _AHEAD * max(1, sum(self._client.nthreads().values()))
        while len(numbers) < most:
            found = next(coming, None)
            if found is None:
                return
            future = self._client.submit(run_cell, found[1], pure=False)
            numbers[future.key] = found[0]
            done.add(future)

    def _outcome(self, future: Any) -> bytes:
        if future.status == "finished":
            outcome: bytes = future.result()
            return outcome
        if future.status == "error":
            error = future.exception()
            return msgspec.json.encode(Outcome(error=f"{type(error).__name__}: {error}"))
        raise DaskError(
            f"the Dask scheduler at {self._address} has gone ({future.status}); "
            "the results of finished cells are saved: go on with --resume"
        )

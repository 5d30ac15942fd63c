"""Writes statuses and checkpoints, and deletes checkpoints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import groupby, islice

import msgspec

from kubetide.acting import BackgroundWrites, Unfinished
from kubetide.objects.base import Json
from kubetide.objects.kinds import VPA_CHECKPOINTS, VPAS
from kubetide.objects.meta import Key
from kubetide.ports.clock import Clock
from kubetide.ports.cluster import Cluster
from kubetide.ports.errors import ApiError, NotFound, Withheld
from kubetide.units.time import Duration
from kubetide.vertical.recommender.decision import Commands, Failure, Outcomes, StatusWrite
from kubetide.vertical.recommender.facts.views import CheckpointView
from kubetide.vertical.recommender.settings import Settings
from kubetide.vertical.series import Steps

NO_TIME = "no time was left in this pass"


class Actor:
    """Carries out commands; a write that hangs goes on in the background, and has failed for the pass."""

    def __init__(self, cluster: Cluster, clock: Clock, settings: Settings) -> None:
        self._cluster = cluster
        self._clock = clock
        self._limit = max(settings.update_worker_count, 1)
        self._timeout = settings.checkpoints_timeout
        limit = self._limit
        self._statuses = BackgroundWrites(
            self._write_status, lambda one: (one.namespace, one.name), limit=limit
        )
        self._checkpoints = BackgroundWrites(self._write_group, _vpa_of, limit=limit)
        self._deletions = BackgroundWrites(self._delete, lambda key: key, limit=limit)

    async def carry_out(
        self, commands: Commands, contents: Iterable[CheckpointView], steps: Steps, *, deletes: bool = True
    ) -> Outcomes:
        """Write the commands and return the outcomes; ``contents`` yields their checkpoints while they are written.

        ``deletes``: Whether checkpoints of VPAs that are not there are deleted.
        """
        self._forget_ended()
        try:
            failures = await self._write_statuses(commands.statuses)
            steps.done("UpdateVPAs")
            failures += await self._write_checkpoints(commands.checkpoints, contents)
            steps.done("MaintainCheckpoints")
            failures += await self._delete_all(commands.deletions if deletes else ())
        except Withheld:
            return Outcomes(withheld=True)
        return Outcomes(tuple(one for one in failures if one is not None))

    async def close(self) -> None:
        """Wait for no write any longer."""
        for writes in (self._statuses, self._checkpoints, self._deletions):
            await writes.close()

    def _forget_ended(self) -> None:
        """Let writes that have ended be made again; the caches show what has become of them."""
        for writes in (self._statuses, self._checkpoints, self._deletions):
            with suppress(Withheld):
                writes.ended()

    async def _write_statuses(self, statuses: Sequence[StatusWrite]) -> list[Failure | None]:
        found = await self._statuses.carry_out(statuses)
        return [
            Failure("status", write.namespace, write.name, one.value) if isinstance(one, Unfinished) else one
            for write, one in zip(statuses, found, strict=True)
        ]

    async def _delete_all(self, keys: Sequence[Key]) -> list[Failure | None]:
        found = await self._deletions.carry_out(keys)
        return [
            Failure("deletion", *key, one.value) if isinstance(one, Unfinished) else one
            for key, one in zip(keys, found, strict=True)
        ]

    async def _write_status(self, write: StatusWrite) -> Failure | None:
        status: Json = msgspec.json.decode(write.status)
        patch: list[Json] = [{"op": "add", "path": "/status", "value": status}]
        try:
            await self._cluster.patch(
                VPAS,
                write.name,
                patch,
                namespace=write.namespace,
                patch_type="json",
                subresource="status",
            )
        except Withheld:
            raise
        except ApiError as error:
            return Failure("status", write.namespace, write.name, str(error))
        return None

    async def _write_checkpoints(
        self, due: Sequence[Key], contents: Iterable[CheckpointView]
    ) -> list[Failure | None]:
        """Write the checkpoints of one VPA after another until the time is up; as many as there are workers always."""
        begun = self._clock.monotonic()
        left = dict.fromkeys(due)
        failures: list[Failure | None] = []
        groups = _by_vpa(contents)
        while some := list(islice(groups, self._limit)):
            found = await self._checkpoints.carry_out(some)
            for group, one in zip(some, found, strict=True):
                key = _vpa_of(group)
                failures.append(
                    Failure("checkpoint", *key, one.value) if isinstance(one, Unfinished) else one
                )
                left.pop(key, None)
            if Duration(self._clock.monotonic() - begun) >= self._timeout:
                return [*failures, *(Failure("checkpoint", *key, NO_TIME) for key in left)]
        return failures

    async def _write_group(self, group: Sequence[CheckpointView]) -> Failure | None:
        errors = [error for one in group if (error := await self._write_checkpoint(one))]
        return Failure("checkpoint", group[0].namespace, group[0].vpa, errors[0]) if errors else None

    async def _write_checkpoint(self, checkpoint: CheckpointView) -> str:
        status: Json = msgspec.json.decode(msgspec.json.encode(checkpoint.status))
        patch: list[Json] = [{"op": "add", "path": "/status", "value": status}]
        namespace, name = checkpoint.namespace, checkpoint.name
        try:
            try:
                await self._cluster.patch(
                    VPA_CHECKPOINTS, name, patch, namespace=namespace, patch_type="json"
                )
            except NotFound:
                body: Json = {
                    "apiVersion": VPA_CHECKPOINTS.api_version,
                    "kind": VPA_CHECKPOINTS.kind,
                    "metadata": {"name": name, "namespace": namespace},
                    "spec": {"vpaObjectName": checkpoint.vpa, "containerName": checkpoint.container},
                    "status": status,
                }
                await self._cluster.create(VPA_CHECKPOINTS, body, namespace=namespace)
        except Withheld:
            raise
        except ApiError as error:
            return str(error)
        return ""

    async def _delete(self, key: Key) -> Failure | None:
        try:
            await self._cluster.delete(VPA_CHECKPOINTS, key[1], namespace=key[0])
        except NotFound:
            return None
        except Withheld:
            raise
        except ApiError as error:
            return Failure("deletion", *key, str(error))
        return None


def _vpa_of(group: Sequence[CheckpointView]) -> Key:
    return group[0].namespace, group[0].vpa


def _by_vpa(contents: Iterable[CheckpointView]) -> Iterator[list[CheckpointView]]:
    for _, group in groupby(contents, key=lambda one: (one.namespace, one.vpa)):
        yield list(group)

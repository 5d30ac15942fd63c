"""The webhook configuration at the API server: written at the start, and anew when somebody deletes or changes it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from kubetide.objects.base import Json
from kubetide.objects.kinds import MUTATING_WEBHOOKS
from kubetide.ports.cluster import Cluster
from kubetide.ports.errors import AlreadyExists, Forbidden, NotFound
from kubetide.vertical.admission.registration import NAME, bundle_patch, leads_to_same_server


class Webhook:
    """Keeps the configuration such that the API server asks this process, unless another admission controller answers.

    Args:
        another_answers: Returns whether the Lease of whoever answers is fresh. This process must not renew it
            unless ``leads_here``.
        tell: Takes a sentence for a person.
    """

    def __init__(
        self, cluster: Cluster, another_answers: Callable[[], Awaitable[bool]], tell: Callable[[str], None]
    ) -> None:
        self._cluster, self._another_answers, self._tell = cluster, another_answers, tell
        self.is_written = False
        """Whether this process has written the configuration."""
        self.leads_here = False
        """Whether it was found, or written, as this process needs it."""

    async def keep(self, body: Json, *, compare_bundle: bool) -> None:
        """Write the configuration if that is needed, and note whether it leads here.

        Args:
            compare_bundle: Whether a CA bundle other than that of ``body`` makes every review fail.
        """
        self.leads_here = await self._is_kept(body, compare_bundle=compare_bundle)

    async def _is_kept(self, body: Json, *, compare_bundle: bool) -> bool:
        problem = ""
        if self.is_written:
            try:
                found = await self._cluster.get(MUTATING_WEBHOOKS.untyped, NAME)
            except NotFound:
                problem = f"somebody has deleted the webhook configuration {NAME}"
            except Forbidden:
                return True  # with an older role nobody can tell
            else:
                if leads_to_same_server(found, body, compare_bundle=compare_bundle):
                    return True
                if await self._another_answers():
                    self._tell_of_another()
                    return False
                problem = f"the webhook configuration {NAME} leads elsewhere, where nobody renews the lease"
        await self._write(body)
        if problem:
            self._tell(f"{problem}; it is written anew")
        return True

    def _tell_of_another(self) -> None:
        if self.leads_here:
            self._tell(
                f"somebody has changed the webhook configuration {NAME}: new pods are not answered for here; it is "
                "written anew once nobody else renews the lease"
            )

    async def write_bundle(self, bundle: bytes) -> None:
        """Let the API server trust these authorities (PEM), if it asks this process."""
        if not self.leads_here:
            return
        try:
            await self._cluster.patch(MUTATING_WEBHOOKS, NAME, bundle_patch(bundle), patch_type="json")
        except (NotFound, Forbidden):
            # Somebody has deleted it, or it may not be patched: it is written anew.
            self.is_written = self.leads_here = False

    async def _write(self, body: Json) -> None:
        try:
            await self._cluster.create(MUTATING_WEBHOOKS, body)
        except AlreadyExists:
            await self._write_over(body)
        self.is_written = True

    async def _write_over(self, body: Json) -> None:
        """Change the configuration that is there; upstream deletes it and creates it, and its roles grant no more."""
        patch: Json = {"metadata": body["metadata"], "webhooks": body["webhooks"]}
        try:
            await self._cluster.patch(MUTATING_WEBHOOKS, NAME, patch)
        except Forbidden:
            await self._cluster.delete(MUTATING_WEBHOOKS, NAME)
            await self._cluster.create(MUTATING_WEBHOOKS, body)

"""The way in to the REST semantics through admission webhooks.

Where no webhook is configured nothing is paid for them. A request that one concerns is handled as
often as it needs answers (``store.review``), and meanwhile everybody else's requests go on.
"""

from __future__ import annotations

from msgspec.structs import replace

from kubetide.embedded.apiserver.admission import Caller, Dispatcher, Hook, UserInfo, View, hooks_of
from kubetide.embedded.apiserver.admission.attributes import Operation
from kubetide.embedded.apiserver.admission.dispatch import Warn
from kubetide.embedded.apiserver.admission.matching import may_concern
from kubetide.embedded.apiserver.store.course import Course, target_of
from kubetide.embedded.apiserver.store.errors import conflict
from kubetide.embedded.apiserver.store.request import Request, Response, Verb
from kubetide.embedded.apiserver.store.rest import Rest
from kubetide.embedded.apiserver.store.review import ReviewNeeded, unsettled
from kubetide.embedded.apiserver.store.selection import Selection
from kubetide.objects.kinds import MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS
from kubetide.objects.webhooks import MutatingWebhookConfiguration, ValidatingWebhookConfiguration
from kubetide.ports.errors import NotFound

# How often a request starts anew because its object was changed while webhooks were asked.
_TRIES = 20

_OPERATIONS: dict[Verb, tuple[Operation, ...]] = {
    "create": ("CREATE",),
    "replace": ("UPDATE",),
    "patch": ("UPDATE", "CREATE"),  # an apply creates what is not there
    "delete": ("DELETE",),
    "deletecollection": ("DELETE",),
}


class Front:
    """Handles requests after webhooks have had their say.

    Args:
        rest: The semantics.
        caller: Calls webhooks; without one every call fails, and the failure policies decide.
        seed: What the uids of reviews are drawn from.

    Attributes:
        idle: No webhook is configured, so that ``rest.handle`` does the same.
    """

    def __init__(self, rest: Rest, caller: Caller | None = None, seed: int = 0) -> None:
        self.idle = False
        self._rest = rest
        self._dispatcher = Dispatcher(caller, seed)
        self._mutating: tuple[Hook, ...] = ()
        self._validating: tuple[Hook, ...] = ()
        self._stale = True
        for kind in (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS):
            rest.store.on_change(kind, self._forget)

    async def handle(self, request: Request, user: UserInfo, warn: Warn = lambda _text: None) -> Response:
        """Answer a request; ``warn`` takes what webhooks want its sender to know.

        Raises: the ApiError that refuses it, that of a webhook among them.
        """
        if self._stale:
            self._read()
        return self._rest.handle(request) if self.idle else await self._reviewed(request, user, warn)

    def _forget(self) -> None:
        self.idle, self._stale = False, True

    def _read(self) -> None:
        """Take in the configurations as they are now."""
        store = self._rest.store
        self._mutating = hooks_of(
            revision.read_as(MutatingWebhookConfiguration)
            for revision in store.select(MUTATING_WEBHOOKS, Selection(MUTATING_WEBHOOKS))
        )
        self._validating = hooks_of(
            revision.read_as(ValidatingWebhookConfiguration)
            for revision in store.select(VALIDATING_WEBHOOKS, Selection(VALIDATING_WEBHOOKS))
        )
        self._stale, self.idle = False, not self._mutating and not self._validating

    async def _reviewed(
        self, request: Request, user: UserInfo, warn: Warn, *, named: bool = True
    ) -> Response:
        operations = _OPERATIONS.get(request.verb, ())
        views = self._views(request) if operations else ()
        mutating = _covering(self._mutating, request, operations, views)
        validating = _covering(self._validating, request, operations, views)
        if not mutating and not validating:
            return self._rest.handle(request)
        if request.verb == "deletecollection":
            return await self._delete_each(request, user, warn)
        course = Course(
            self._rest.store,
            request,
            views,
            user,
            mutating=mutating,
            validating=validating,
            named=named,
        )
        asked = replace(request, review=course)
        for _ in range(_TRIES):
            try:
                return self._rest.handle(asked)
            except ReviewNeeded as needed:
                attributes = needed.attributes
                if needed.mutating:
                    course.note(needed, await self._dispatcher.mutate(mutating, attributes, warn))
                else:
                    await self._dispatcher.validate(validating, attributes, warn)
                    course.note(needed, attributes.object)
        raise conflict(request.kind, request.name)

    async def _delete_each(self, request: Request, user: UserInfo, warn: Warn) -> Response:
        """Delete a collection object by object, so that each is reviewed. The first refusal ends it."""
        listed = self._rest.handle(replace(request, verb="list", body=None))
        for revision in listed.listing or ():
            namespace, name = revision.key
            one = replace(request, verb="delete", namespace=namespace, name=name)
            try:
                await self._reviewed(one, user, warn, named=False)
            except NotFound:
                continue  # gone meanwhile
        return replace(listed, version=self._rest.store.version)

    def _views(self, request: Request) -> tuple[View, ...]:
        """Return the versions of the resource, that of the request first. Raises NotFound."""
        stored = self._rest.store.registered(request.kind)
        views = [View(stored.version, unsettled, unsettled)]
        views += [
            View(version.kind.version, version.from_stored, version.to_stored)
            for version in self._rest.versions_of(stored)
        ]
        return tuple(sorted(views, key=lambda view: view.version != request.kind.version))


def _covering(
    hooks: tuple[Hook, ...], request: Request, operations: tuple[Operation, ...], views: tuple[View, ...]
) -> tuple[Hook, ...]:
    """Return the webhooks whose rules cover the request, as far as is known before it is handled."""
    targets = [target_of(request, operation, request.body) for operation in operations]
    versions = [view.version for view in views]
    return tuple(hook for hook in hooks if any(may_concern(hook, target, *versions) for target in targets))

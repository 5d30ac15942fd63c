"""Asks webhooks: those that mutate one after the other, those that validate all at once.

Source: apiserver v1.36, admission/plugin/webhook: mutating and validating dispatcher, reinvocation.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from urllib.parse import urlsplit

import msgspec

from kubetide.acting import in_parallel
from kubetide.embedded.apiserver.admission.attributes import Attributes, View
from kubetide.embedded.apiserver.admission.caller import Address, Caller, CallError
from kubetide.embedded.apiserver.admission.conditions import meets_conditions
from kubetide.embedded.apiserver.admission.hooks import Hook
from kubetide.embedded.apiserver.admission.matching import view_for
from kubetide.embedded.apiserver.admission.review import (
    Answer,
    BadAnswer,
    BadPatch,
    Denied,
    read_answer,
    review_of,
    version_for,
)
from kubetide.objects.base import Json
from kubetide.ports.errors import ApiError, InternalError
from kubetide.units.patch import PatchError, json_patch
from kubetide.units.seeds import uuid_of

Warn = Callable[[str], None]
"""Takes a warning for whoever sent the request."""

_NO_CALLER = "no webhook caller in this run: webhooks are called in real time only"


class _Failed(Exception):
    """A call that failed; the text goes behind the name of the webhook."""


class Dispatcher:
    """Asks webhooks through a caller.

    Args:
        caller: Posts the reviews; without one, every call fails.
        seed: What the uids of the reviews are drawn from.
    """

    def __init__(self, caller: Caller | None, seed: int) -> None:
        self._caller = caller
        self._seed = seed
        self._asked = 0

    async def mutate(self, hooks: Sequence[Hook], attributes: Attributes, warn: Warn) -> Json | None:
        """Return the object as the webhooks want it, in the stored version; None for a deletion.

        When one has changed the object, those before it that ask for it are asked once more.

        Raises: Denied, Forbidden, InternalError.
        """
        asked: set[str] = set()  # who may be asked again, since the last change
        again: set[str] = set()
        for round_ in (1, 2):
            for hook in hooks:
                view = view_for(hook, attributes)
                if view is None or (round_ == 2 and hook.identity not in again):
                    continue
                if not meets_conditions(hook, attributes, view):
                    continue
                changed = await self._mutated(hook, attributes, view, warn)
                if changed is not None and changed != attributes.object:
                    attributes = replace(attributes, object=changed)
                    again |= asked
                    asked.clear()
                if hook.again:
                    asked.add(hook.identity)
            if not again:
                break
        return attributes.object

    async def validate(self, hooks: Sequence[Hook], attributes: Attributes, warn: Warn) -> None:
        """Return when every webhook that is concerned allows the request.

        Raises: Denied, Forbidden, InternalError; of several refusals that of the first webhook in order.
        """
        views = [(hook, view_for(hook, attributes)) for hook in hooks]
        concerned = [
            (hook, view)
            for hook, view in views
            if view is not None and meets_conditions(hook, attributes, view)
        ]

        async def ask(one: tuple[Hook, View]) -> ApiError | None:
            hook, view = one
            return await self._validated(hook, attributes, view, warn)

        found = await in_parallel(concerned, ask, limit=len(concerned))
        for refusal in found:
            if refusal is not None:
                raise refusal

    async def _mutated(self, hook: Hook, attributes: Attributes, view: View, warn: Warn) -> Json | None:
        """Return the object as one webhook wants it, None where it wants no change."""
        try:
            answer = await self._answer(hook, attributes, view, mutating=True)
        except _Failed as error:
            _pass_over(hook, error)
            return None
        _take(hook, answer, warn)
        if answer.patch is None:
            return None
        if attributes.object is None:
            raise _internal(
                f'admission webhook "{hook.name}" attempted to modify the object, which is not supported for this '
                "operation"
            )
        shown = attributes.shown(attributes.object, view)
        try:
            patched = json_patch(shown, answer.patch)
        except PatchError as error:
            raise _internal(f'the JSON patch of admission webhook "{hook.name}": {error}') from error
        if not isinstance(patched, dict) or not isinstance(patched.get("metadata"), dict):
            raise _internal(
                f'the JSON patch of admission webhook "{hook.name}" leaves no object with metadata'
            )
        return attributes.converted(patched, view)

    async def _validated(self, hook: Hook, attributes: Attributes, view: View, warn: Warn) -> ApiError | None:
        try:
            answer = await self._answer(hook, attributes, view, mutating=False)
            _take(hook, answer, warn)
        except ApiError as refusal:
            return refusal
        except _Failed as error:
            try:
                _pass_over(hook, error)
            except ApiError as refusal:
                return refusal
        return None

    async def _answer(self, hook: Hook, attributes: Attributes, view: View, *, mutating: bool) -> Answer:
        """Ask one webhook. Raises _Failed, where its failure policy decides."""
        self._asked += 1
        uid = uuid_of(self._seed, "review", self._asked)
        version = version_for(hook.review_versions)
        body = msgspec.json.encode(review_of(attributes, view, uid, version))
        try:
            answered = await self._call(hook, body)
            return read_answer(answered, uid=uid, version=version, mutating=mutating)
        except CallError as error:
            raise _Failed(f"failed to call webhook: {error}") from error
        except BadAnswer as error:
            raise _Failed(f"received invalid webhook response: {error}") from error
        except BadPatch as error:
            raise _Failed(str(error)) from error

    async def _call(self, hook: Hook, body: bytes) -> bytes:
        if self._caller is None:
            raise CallError(_NO_CALLER)
        if hook.service is not None:
            service = hook.service
            host = f"{service.name}.{service.namespace}.svc:{service.port or 443}"
            url = _timed(f"https://{host}{service.path or '/'}", hook.timeout_s)
            raise CallError(f'Post "{url}": service "{service.name}" not found')
        url = _timed(hook.url, hook.timeout_s)
        try:
            async with asyncio.timeout(hook.timeout_s):
                return await self._caller.call(Address(url, hook.authority), body)
        except TimeoutError as error:
            raise CallError(f'Post "{url}": context deadline exceeded') from error


def _timed(url: str, timeout_s: int) -> str:
    """Return the URL that is called, with the timeout of the call as a parameter."""
    path = "" if urlsplit(url).path else "/"
    return f"{url}{path}?timeout={timeout_s}s"


def _take(hook: Hook, answer: Answer, warn: Warn) -> None:
    for text in answer.warnings:
        warn(text)
    if not answer.allowed:
        raise Denied(hook.name, answer.status)


def _pass_over(hook: Hook, failure: _Failed) -> None:
    """Let a failed call go under the policy Ignore. Raises InternalError under Fail."""
    if hook.fails_closed:
        raise _internal(f'failed calling webhook "{hook.name}": {failure}') from failure


def _internal(text: str) -> InternalError:
    return InternalError(f"Internal error occurred: {text}", causes=({"message": text},))

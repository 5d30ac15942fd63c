"""Webhooks that answer in the process, and what they are asked about."""

from __future__ import annotations

import base64
import json

import msgspec

from kubetide.embedded.apiserver.admission import Attributes, UserInfo, View, hooks_of
from kubetide.embedded.apiserver.admission.attributes import Target
from kubetide.embedded.apiserver.defaults.defaults import defaults
from kubetide.objects.kinds import MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS


def same(json):
    return json


V1, V2 = View("v1", same, same), View("v2", same, same)


def rule(**changes):
    return {
        "operations": ["*"],
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "resources": ["pods"],
        **changes,
    }


def webhook(name, **changes):
    return {
        "name": name,
        "clientConfig": {"url": f"https://127.0.0.1/{name}"},
        "rules": [rule()],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        **changes,
    }


def hooks(*webhooks, kind=MUTATING_WEBHOOKS, called="hooks"):
    """Return the webhooks of one configuration, with defaults."""
    json = defaults(kind, {"metadata": {"name": called}, "webhooks": list(webhooks)})
    return hooks_of([msgspec.convert(json, kind.model)])


def validating(*webhooks):
    return hooks(*webhooks, kind=VALIDATING_WEBHOOKS)


def target(operation="CREATE", group="", plural="pods", subresource="", namespace="shop"):
    return Target(operation, group, plural, subresource, namespace)


def attributes(**changes):
    fields = {
        "target": target(),
        "name": "p",
        "kind": "Pod",
        "views": (V1,),
        "type_name": None,
        "object": {"metadata": {"name": "p", "labels": {}}},
        "old": None,
        "user": UserInfo("me"),
        "options": {},
    }
    return Attributes(**{**fields, **changes})


def patch(*operations):
    return {"patchType": "JSONPatch", "patch": base64.b64encode(json.dumps(operations).encode()).decode()}


def set_label(key, value="yes"):
    return patch({"op": "add", "path": f"/metadata/labels/{key}", "value": value})


class Answering:
    """A caller: ``say(name, request)`` gives what the webhook of that name responds."""

    def __init__(self, say):
        self.say = say
        self.asked = []

    async def call(self, address, body):
        request = json.loads(body)["request"]
        name = address.url.partition("127.0.0.1/")[2].partition("?")[0]
        self.asked.append((name, request))
        said = self.say(name, request)
        if hasattr(said, "__await__"):
            said = await said
        response = {"uid": request["uid"], "allowed": True, **(said or {})}
        review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
        return json.dumps(review).encode()

    @property
    def names(self):
        return [name for name, _ in self.asked]

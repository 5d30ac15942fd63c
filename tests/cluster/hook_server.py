"""A webhook over TLS that answers as its path says, for tests against a real socket."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
from contextlib import asynccontextmanager

import trustme
from aiohttp import web

from kubetide.serving import Listener

_CA = trustme.CA()
_OTHER = trustme.CA()
_CERTIFICATE = _CA.issue_cert("127.0.0.1")


def bundle(ca=_CA):
    """Return the caBundle that trusts the webhook."""
    return base64.b64encode(ca.cert_pem.bytes()).decode()


def patch(*operations):
    return {"patchType": "JSONPatch", "patch": base64.b64encode(json.dumps(operations).encode()).decode()}


def review(response, **more):
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        **({"response": response} if response is not None else {}),
        **more,
    }


def denied(**status):
    return {"allowed": False, "status": status}


def labelled(value):
    return patch({"op": "add", "path": "/metadata/labels", "value": value})


def replaced(field, value):
    return patch({"op": "replace", "path": f"/metadata/{field}", "value": value})


LABEL = labelled({"hook": "yes"})

# What a path says of a review that is otherwise well answered and allowed.
RESPONSES = {
    "allow": {},
    "deny": denied(message="no way"),
    "deny403": denied(code=403, message="no way", reason="Forbidden"),
    "denyreason": denied(reason="Because"),
    "denysilent": {"allowed": False},
    "denydetails": denied(
        code=422,
        message="no way",
        reason="Invalid",
        status="Success",
        details={"name": "x", "causes": [{"reason": "a", "message": "b", "field": "c"}]},
    ),
    "denywarn": {"allowed": False, "warnings": ["careful"]},
    "wronguid": {"uid": "x"},
    "badtype": {"allowed": "yes"},
    "label": LABEL,
    "annotate": patch({"op": "add", "path": "/metadata/annotations", "value": {"hook": "yes"}}),
    "patchnotype": {"patch": LABEL["patch"]},
    "typenopatch": {"patchType": "JSONPatch"},
    "patchodd": {**LABEL, "patchType": "Merge"},
    "patchundecodable": {"patchType": "JSONPatch", "patch": base64.b64encode(b'{"a":1}').decode()},
    "patchbadb64": {"patchType": "JSONPatch", "patch": "%%%"},
    "patchnothere": patch({"op": "remove", "path": "/spec/nothing"}),
    "patchtest": patch({"op": "test", "path": "/metadata/name", "value": "zz"}),
    "patchbadobject": labelled(5),
    "patchinvalid": labelled({"hook": "%"}),
    "patchrename": replaced("name", "renamed"),
    "patchnamespace": replaced("namespace", "kube-system"),
    "patchempty": patch(),
    "warn": {"warnings": ['first "one"', "second", "second", "x" * 300, ""]},
}

# Whole answers: code and body.
ANSWERS = {
    "noresponse": (200, review(None)),
    "wrongkind": (200, {"apiVersion": "v1", "kind": "Pod", "response": {"allowed": True}}),
    "empty": (200, b""),
    "text": (200, b"hello"),
    "list": (200, [1]),
    "e404": (404, b"nope"),
    "e500": (500, b"boom"),
    "e500json": (500, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "sad"}),
    "e400": (400, b"bad thing"),
    "e429": (429, b"busy"),
    "e503": (503, b"later"),
    "redirect": (302, b""),
    "huge": (200, b" " * (9 * 1024 * 1024)),
}


class HookServer:
    """Notes what it is asked: pairs of a path and a request."""

    def __init__(self):
        self.asked = []
        self.url = ""
        self.go_on = asyncio.Event()
        self.hanging = asyncio.Event()

    def client_config(self, path, ca=_CA):
        return {"url": f"{self.url}/{path}", "caBundle": bundle(ca)}

    def untrusted(self, path):
        return self.client_config(path, _OTHER)

    def requests(self, path):
        return [request for said, request in self.asked if said == path]

    async def answer(self, http):
        body = await http.json()
        request = body["request"]
        path = http.path.strip("/")
        self.asked.append((path, request))
        what = path.partition("/")[0]
        if what == "hang":
            self.hanging.set()
            await self.go_on.wait()
        if what in ANSWERS:
            code, said = ANSWERS[what]
            headers = {"Location": "/allow"} if code == 302 else None
            if isinstance(said, bytes):
                kind = "text/plain" if said else None
                return web.Response(status=code, body=said, content_type=kind, headers=headers)
            return web.json_response(said, status=code)
        response = {"uid": request["uid"], "allowed": True, **RESPONSES.get(what, {})}
        if what == "wrongversion":
            return web.json_response(review(response, apiVersion="admission.k8s.io/v1beta1"))
        if what == "nokind":
            return web.json_response({"response": response})
        return web.json_response(review(response), status=201 if what == "e201" else 200)


@asynccontextmanager
async def hook_server():
    """Yield a webhook on a free port of this machine."""
    hooks = HookServer()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _CERTIFICATE.configure_cert(context)
    app = web.Application()
    app.router.add_route("POST", "/{path:.*}", hooks.answer)
    listener = Listener(app, grace_s=0.1, handler_cancellation=True)
    try:
        await listener.listen("127.0.0.1", tls=context)
        hooks.url = f"https://{listener.authority}"
        yield hooks
    finally:
        hooks.go_on.set()
        await listener.close()


def configuration(name, *webhooks):
    return {"metadata": {"name": name}, "webhooks": list(webhooks)}


def webhook(client_config, *resources, name="a.hooks.example.com", group="", **more):
    rule = {
        "operations": more.pop("operations", ["*"]),
        "apiGroups": [group],
        "apiVersions": more.pop("versions", ["v1"]),
        "resources": list(resources),
    }
    return {
        "name": name,
        "clientConfig": client_config,
        "rules": [rule],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        **more,
    }

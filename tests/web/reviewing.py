"""A dashboard whose lookers the API server knows, asked with different tokens."""

from __future__ import annotations

import aiohttp

from kubetide.cluster import HttpCluster
from kubetide.objects.kinds import Kind
from kubetide.runtime.permissions import DASHBOARD
from kubetide.serving.listener import Listener
from kubetide.web.history import History
from kubetide.web.reviews import ACCESS_REVIEWS, PATH, ReviewedAccess
from kubetide.web.server import API, Dashboard

ROLES = Kind("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", dict, namespaced=False)
BINDINGS = Kind(
    "rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings", dict, namespaced=False
)


async def grant(admin, name, rules, subject):
    """Create a ClusterRole and bind it to a subject."""
    await admin.create(ROLES, {"metadata": {"name": name}, "rules": rules})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
    await admin.create(BINDINGS, {"metadata": {"name": name}, "roleRef": role, "subjects": [subject]})


async def take_away(admin, name):
    await admin.delete(BINDINGS, name)
    await admin.delete(ROLES, name)


def user(name):
    return {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name}


ASKING = [
    {"apiGroups": [one.group], "resources": list(one.resources), "verbs": list(one.verbs)}
    for one in DASHBOARD.grants
]
"""The rules by which a dashboard may ask."""

LOOKING = [{"nonResourceURLs": [PATH], "verbs": ["get"]}]


KNOWN = "system:authenticated"
PATHS = [
    ("get", "/healthz", [KNOWN], True),
    ("get", "/api/v1/status", [KNOWN], True),
    ("get", "/openapi/v3", [KNOWN], True),
    ("get", "/metrics", [KNOWN], False),
    ("get", PATH, [KNOWN], False),
    ("post", "/api", [KNOWN], False),
    ("get", PATH, ["lookers", KNOWN], True),
    ("put", PATH, ["lookers", KNOWN], False),
    ("delete", "/anything", ["system:masters"], True),
]
"""Paths, who asks by groups, and what the API server says once ``lookers`` may look."""


async def allowed_paths(admin):
    """Return what the server says to a review of each of ``PATHS``."""
    found = []
    for verb, path, groups, _ in PATHS:
        asked = {"user": "ann", "groups": groups, "nonResourceAttributes": {"path": path, "verb": verb}}
        found.append((await admin.create(ACCESS_REVIEWS, {"spec": asked}))["status"]["allowed"])
    return found


async def statuses(folder, connection, clock, tokens, path=f"{API}/openapi.json"):
    """Serve the folder with the connection as the dashboard's own; return (status, text) for each token."""
    async with HttpCluster(connection, clock) as cluster:
        listener = Listener(Dashboard(History(folder), ReviewedAccess(cluster, clock), clock).app())
        await listener.listen("127.0.0.1")
        try:
            async with aiohttp.ClientSession() as session:
                found = []
                for token in tokens:
                    headers = {"Authorization": f"Bearer {token}"} if token else {}
                    url = f"http://{listener.authority}{path}"
                    async with session.get(url, headers=headers) as answer:
                        found.append((answer.status, await answer.text()))
                return found
        finally:
            await listener.close()

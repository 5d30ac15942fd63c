"""The roles of the dashboard, and of the people who see it."""

from __future__ import annotations

from tests.cluster.served import ADMIN, TOKEN, served
from tests.deploy.conftest import UI
from tests.deploy.requests import account_of, granted_by

from kubetide.cluster import (
    Connection,
    HttpCluster,
)
from kubetide.embedded.apiserver.http import Identities
from kubetide.runtime.timing.clock import run_real
from kubetide.web.reviews import PATH, ReviewedAccess


def test_the_dashboard_uses_its_role(rendered):
    """Both reviews are granted with the dashboard, and are all that it asks of the API server."""
    seen = set()

    async def main(clock):
        role = {one for one in granted_by(rendered(UI)) if one.role == "ClusterRole kubetide-ui"}
        identities = Identities({TOKEN: ADMIN, "account": account_of(role, seen)})
        async with (
            served(clock, identities=identities) as (_, server, connection),
            HttpCluster(Connection(server.url, "account", connection.authority), clock) as client,
        ):
            assert await ReviewedAccess(client, clock).refusal(TOKEN) is None
        return role

    role = run_real(main)
    assert all(any(one.allows(request) for request in seen) for one in role)
    assert len(seen) == len(role) == 2


def test_the_viewers_role_is_what_the_dashboard_reviews(rendered):
    """The role that the chart makes for people grants the path that is reviewed, and is bound to nobody."""
    objects = rendered(UI)
    (role,) = [one for one in objects if one["metadata"]["name"] == "kubetide-ui-viewer"]
    assert role["rules"] == [{"nonResourceURLs": [PATH], "verbs": ["get"]}]
    assert "kubetide-ui-viewer" not in {one["roleRef"]["name"] for one in objects if "roleRef" in one}
    assert not [one for one in rendered() if "-ui" in one["metadata"]["name"]]

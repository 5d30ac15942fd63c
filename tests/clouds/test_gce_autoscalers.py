"""Autoscalers of Compute Engine that change the sizes of the provider's groups, as `kubetide doctor` asks for them."""

from __future__ import annotations

import pytest
from tests.clouds.fakes.gce import PROJECT, ROOT, ZONE
from tests.clouds.vendors import Gce
from tests.clouds.vendors.gce import url

from kubetide.ports.errors import CloudError

WEB, SYSTEM = url("web"), url("system")


def autoscaler(name, group="web", *, status="ACTIVE", **policy):
    """Return an autoscaler of a group, as the API describes it."""
    zone = f"{ROOT}/projects/{PROJECT}/zones/{ZONE}"
    return {
        "kind": "compute#autoscaler",
        "id": "1",
        "name": name,
        "target": f"{zone}/instanceGroupManagers/{group}",
        "autoscalingPolicy": {
            "minNumReplicas": 1,
            "maxNumReplicas": 5,
            "coolDownPeriodSec": 60,
            "cpuUtilization": {"utilizationTarget": 0.6, "predictiveMethod": "NONE"},
            "mode": "ON",
            **policy,
        },
        "zone": zone,
        "selfLink": f"{zone}/autoscalers/{name}",
        "status": status,
        "recommendedSize": 2,
    }


def schedule(**more):
    return {"minRequiredReplicas": 3, "schedule": "0 8 * * *", "durationSec": 3600, **more}


async def scaling_policies(here, *autoscalers):
    """Return what a new provider says of these autoscalers of the zone."""
    here.fake.autoscalers = list(autoscalers)
    return await here.connect().scaling_policies()


@pytest.mark.parametrize(
    ("policy", "summary"),
    [
        ({}, "autoscaler a (mode ON)"),
        ({"mode": "ONLY_SCALE_OUT"}, "autoscaler a (mode ONLY_SCALE_OUT)"),
        ({"mode": "ONLY_UP"}, "autoscaler a (mode ONLY_UP)"),
        (
            {"scalingSchedules": {"days": schedule(), "old": schedule(disabled=True)}},
            "autoscaler a (mode ON, schedule days)",
        ),
        (
            {"scalingSchedules": {name: schedule(disabled=False) for name in "edcba"}},
            "autoscaler a (mode ON, schedules a, b, c and 2 more)",
        ),
    ],
)
def test_an_autoscaler_is_named_with_its_mode_and_the_schedules_that_are_on(policy, summary):
    """The group's id is that of the provider."""
    here = Gce().with_groups()
    assert here.play(scaling_policies, autoscaler("a", **policy)) == {WEB: (summary,)}


def test_groups_of_which_no_autoscaler_is_on_are_left_out():
    """One that is off does nothing, neither by its schedules; one that is being deleted soon is not there."""
    off = autoscaler("a", mode="OFF", scalingSchedules={"days": schedule()})
    here = Gce().with_groups()
    assert here.play(scaling_policies) == {}
    assert here.play(scaling_policies, off, autoscaler("b", "system", status="DELETING")) == {}


def test_autoscalers_of_other_groups_are_left_out():
    """The list has all of the zone; one whose configuration has errors is on all the same."""
    others = [autoscaler("a", "database"), {**autoscaler("b"), "target": ""}]
    found = Gce().with_groups().play(scaling_policies, *others, autoscaler("c", status="ERROR"))
    assert found == {WEB: ("autoscaler c (mode ON)",)}


def test_all_pages_count_and_groups_are_ordered():
    """An autoscaler without a policy scales by its default one; a null is as if it were not there."""
    listed = [autoscaler("b"), {**autoscaler("a", "system"), "autoscalingPolicy": None}]

    async def story(here):
        found = await scaling_policies(here, *listed)
        return list(found.items()), here.fake.calls.count("GET autoscalers")

    found, calls = Gce(page=1).with_groups().play(story)
    assert found == [(SYSTEM, ("autoscaler a (mode ON)",)), (WEB, ("autoscaler b (mode ON)",))]
    assert calls == 2


def test_only_zones_with_groups_are_asked():
    """Without groups there is nothing to ask for."""

    async def story(here):
        assert await scaling_policies(here, autoscaler("a")) == {}
        assert "GET autoscalers" not in here.fake.calls

    Gce(discovery=("mig:namePrefix=other,min=0,max=4",)).with_groups().play(story)


def test_a_refusal_names_the_right_that_is_missing():
    """Other errors are as they came."""

    async def story(here):
        for refused, words in (
            ((403, "forbidden"), "Error 403: forbidden, forbidden; allow compute.autoscalers.list"),
            ((400, "invalid"), "Error 400: invalid, invalid"),
        ):
            here.fake.refused_changes = {"GET autoscalers": refused}
            with pytest.raises(CloudError) as found:
                await here.connect().scaling_policies()
            assert str(found.value) == f"googleapi: {words}"
            assert (found.value.cause == "Permission") == (refused[0] == 403)

    Gce().with_groups().play(story)


def test_an_autoscaler_that_cannot_be_read_hides_no_other():
    """Where it is the only one, it is an error that names it."""
    broken = autoscaler("odd", mode=["ON"])

    async def story(here):
        found = await scaling_policies(here, broken, autoscaler("a", "system"))
        assert found == {SYSTEM: ("autoscaler a (mode ON)",)}
        with pytest.raises(CloudError, match="answer on odd cannot be read"):
            await scaling_policies(here, broken)

    Gce().with_groups().play(story)

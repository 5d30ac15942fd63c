"""Autoscale settings that change the sizes of the provider's sets, as `kubetide doctor` asks for them."""

from __future__ import annotations

import pytest
from tests.clouds.fakes.azure import GROUP, SUBSCRIPTION
from tests.clouds.vendors import Azure

from kubetide.clouds.common.node_spec import NodeSpec
from kubetide.ports.errors import CloudError

RESOURCES = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{GROUP}/providers"
SETS = f"{RESOURCES}/Microsoft.Compute/virtualMachineScaleSets"
RULE = {
    "metricTrigger": {
        "metricName": "Percentage CPU",
        "metricResourceUri": f"{SETS}/web",
        "timeGrain": "PT1M",
        "statistic": "Average",
        "timeWindow": "PT5M",
        "timeAggregation": "Average",
        "operator": "GreaterThan",
        "threshold": 70,
    },
    "scaleAction": {"direction": "Increase", "type": "ChangeCount", "value": "1", "cooldown": "PT5M"},
}


def profile(least=1, most=5, *rules):
    """Return a profile with these bounds, as the API describes it."""
    capacity = {"minimum": str(least), "maximum": str(most), "default": str(least)}
    return {"name": "default", "capacity": capacity, "rules": list(rules)}


def setting(name, target="web", *profiles, **properties):
    """Return an autoscale setting of a set, as the API describes it; it has rules unless profiles are given."""
    return {
        "id": f"{RESOURCES}/microsoft.insights/autoscalesettings/{name}",
        "type": "Microsoft.Insights/autoscaleSettings",
        "name": name,
        "location": "westeurope",
        "tags": None,
        "properties": {
            "name": name,
            "enabled": True,
            "targetResourceUri": f"{SETS}/{target}",
            "profiles": list(profiles or [profile(1, 5, RULE)]),
            "notifications": [],
            "predictiveAutoscalePolicy": None,
            **properties,
        },
    }


async def scaling_policies(here, *settings):
    """Return what a new provider says of these settings of the resource group."""
    here.fake.autoscale_settings = list(settings)
    return await here.connect().scaling_policies()


@pytest.mark.parametrize(
    ("profiles", "summary"),
    [
        ([profile(1, 5, RULE)], "autoscale setting a (rules)"),
        ([profile(3, 3)], "autoscale setting a (fixed size 3)"),
        ([profile(1, 5)], "autoscale setting a (size 1 to 5)"),
        (
            [profile(1, 5, RULE), profile(2, 9, RULE, RULE), profile(3, 3)],
            "autoscale setting a (rules, fixed size 3)",
        ),
        (
            [profile(size, size) for size in range(5)],
            "autoscale setting a (fixed size 0, fixed size 1, fixed size 2 and 2 more)",
        ),
    ],
)
def test_an_autoscale_setting_is_named_with_what_its_profiles_do(profiles, summary):
    """A profile without rules sets a size, too: one outside of its bounds is brought within them."""
    here = Azure().with_groups()
    assert here.play(scaling_policies, setting("a", "web", *profiles)) == {"web": (summary,)}


def test_sets_of_which_no_setting_is_on_are_left_out():
    """One that is switched off does nothing, and neither does one without profiles."""
    here = Azure().with_groups()
    assert here.play(scaling_policies) == {}
    off = [
        setting("a", enabled=False),
        setting("b", enabled=None),
        setting("c", "system", profiles=None),
    ]
    assert here.play(scaling_policies, *off) == {}


def test_settings_of_other_resources_are_left_out():
    """Such as sets that the provider does not serve, and other kinds; one without a target sizes nothing."""
    plan = f"{RESOURCES}/Microsoft.Web/serverfarms/web"
    others = [
        setting("a", "database"),
        setting("b", targetResourceUri=plan),
        setting("c", targetResourceUri=None),
    ]
    found = Azure().with_groups().play(scaling_policies, *others, setting("d"))
    assert found == {"web": ("autoscale setting d (rules)",)}


def test_all_pages_count_and_ids_are_compared_without_case():
    """The group's id is that of the provider: as the flag writes it. Groups and settings are ordered."""

    async def story(here):
        here.fake.autoscale_settings = [
            setting("b", targetResourceUri=f"{SETS}/web".upper()),
            setting("c", "system"),
            setting("a"),
        ]
        here.fleet.add("Shop")
        here.fake.autoscale_settings.append(setting("d", "shop"))
        found = await here.connect(NodeSpec("SHOP", 0, 3)).scaling_policies()
        return list(found.items()), here.fake.calls.count("GET autoscalesettings")

    found, calls = Azure(page=1).with_groups().play(story)
    assert found == [
        ("SHOP", ("autoscale setting d (rules)",)),
        ("system", ("autoscale setting c (rules)",)),
        ("web", ("autoscale setting a (rules)", "autoscale setting b (rules)")),
    ]
    assert calls == 4


def test_a_refusal_names_the_right_that_is_missing():
    """Other errors are as they came."""

    async def story(here):
        for refused, message in (
            (
                (403, "AuthorizationFailed"),
                "AuthorizationFailed (403): AuthorizationFailed; allow Microsoft.Insights/autoscalesettings/read",
            ),
            ((409, "Conflict"), "Conflict (409): Conflict"),
        ):
            here.fake.broken = {"autoscalesettings": refused}
            with pytest.raises(CloudError) as found:
                await here.connect().scaling_policies()
            assert str(found.value) == message
            assert (found.value.cause == "Permission") == (refused[0] == 403)

    Azure().with_groups().play(story)


def test_a_setting_that_cannot_be_read_hides_no_other():
    """Where it is the only one, it is an error that names it."""
    broken = setting("odd", profiles=[{"name": "default", "capacity": None, "rules": []}])

    async def story(here):
        found = await scaling_policies(here, broken, setting("a", "system"))
        assert found == {"system": ("autoscale setting a (rules)",)}
        with pytest.raises(CloudError, match="answer on odd cannot be read"):
            await scaling_policies(here, broken)

    Azure().with_groups().play(story)

"""Scaling policies and scheduled actions of Tencent Cloud that change the sizes of groups, as `kubetide doctor` asks for them."""

from __future__ import annotations

import pytest
from tests.clouds.vendors import Tencent

from kubetide.ports.errors import CloudError

POLICIES, ACTIONS = "DescribeScalingPolicies", "DescribeScheduledActions"
NOW = "2026-03-02T08:00:00+08:00"
"""The time of the tests, in the zone that Tencent Cloud writes times in."""


def policy(name, group="asg-web", **more):
    """Return a scaling policy of a group, as the API describes it."""
    return {
        "AutoScalingGroupId": group,
        "AutoScalingPolicyId": f"asp-{name}",
        "ScalingPolicyName": name,
        "ScalingPolicyType": "SIMPLE",
        "AdjustmentType": "CHANGE_IN_CAPACITY",
        "AdjustmentValue": 3,
        "Cooldown": 60,
        "MetricAlarm": {
            "ComparisonOperator": "GREATER_THAN",
            "ContinuousTime": 5,
            "MetricName": "CPU_UTILIZATION",
            "Period": 60,
            "Statistic": "AVERAGE",
            "Threshold": 80,
        },
        "PredefinedMetricType": None,
        "TargetValue": None,
        "DisableScaleIn": None,
        "NotificationUserGroupIds": [],
        **more,
    }


def action(name, group="asg-web", **more):
    """Return a scheduled action of a group that recurs without an end, as the API describes it."""
    return {
        "ScheduledActionId": f"asst-{name}",
        "ScheduledActionName": name,
        "AutoScalingGroupId": group,
        "StartTime": "2026-01-01T00:00:00+08:00",
        "Recurrence": "0 20 * * *",
        "EndTime": None,
        "MaxSize": 15,
        "DesiredCapacity": 1,
        "MinSize": 1,
        "CreatedTime": "2025-12-01T02:19:52Z",
        "ScheduledType": "CRONTAB",
        **more,
    }


async def scaling_policies(here, policies=(), actions=()):
    """Return what a new provider says of these policies and actions of the region."""
    here.fake.policies, here.fake.actions = list(policies), list(actions)
    return await here.connect().scaling_policies()


def found(*, policies=(), actions=()):
    return Tencent().with_groups().play(scaling_policies, policies, actions)


def test_groups_without_any_are_left_out():
    """Nothing is found where there is nothing, and of groups that are not the provider's."""
    assert found() == {}
    assert found(policies=[policy("cpu", "asg-other")], actions=[action("night", "asg-other")]) == {}


def test_policies_and_actions_are_named_by_group_in_order():
    """A policy that only adds machines counts, too; one of an older group has no type."""
    tracking = policy(
        "cpu-50",
        ScalingPolicyType="TARGET_TRACKING",
        MetricAlarm=None,
        PredefinedMetricType="ASG_AVG_CPU_UTILIZATION",
        TargetValue=50,
        DisableScaleIn=True,
    )
    old = {key: value for key, value in policy("old", "asg-system").items() if key != "ScalingPolicyType"}
    assert list(found(policies=[tracking, old], actions=[action("night")]).items()) == [
        ("asg-system", ("scaling policy old (SIMPLE)",)),
        ("asg-web", ("scaling policy cpu-50 (TARGET_TRACKING)", "scheduled action night (0 20 * * *)")),
    ]


@pytest.mark.parametrize(
    ("times", "is_to_come"),
    [
        ({"EndTime": "2026-03-02T08:00:01+08:00"}, True),
        ({"EndTime": "2026-03-02T07:59:59+08:00"}, False),
        ({"EndTime": "0000-00-00T00:00:00+08:00"}, True),
        ({"Recurrence": "", "StartTime": NOW}, True),
        ({"Recurrence": "", "StartTime": "2026-03-02T07:59:59+08:00"}, False),
        ({"Recurrence": None, "StartTime": "2026-03-02T07:59:59+08:00"}, False),
    ],
)
def test_actions_that_have_ended_are_left_out(times, is_to_come):
    """The API lists them on; an end that is no time is none."""
    when = times.get("Recurrence", "0 20 * * *") or times["StartTime"]
    expected = {"asg-web": (f"scheduled action night ({when})",)} if is_to_come else {}
    assert found(actions=[action("night", **times)]) == expected


def test_nothing_acts_in_a_group_that_is_disabled():
    """Tencent Cloud then executes neither policies nor actions."""
    here = Tencent().with_groups()
    lists = [policy("cpu"), policy("cpu", "asg-system")], [action("night")]
    here.fake.groups["asg-web"] = {"EnabledStatus": "DISABLED"}
    here.fake.groups["asg-system"] = {"EnabledStatus": "ENABLED"}
    assert here.play(scaling_policies, *lists) == {"asg-system": ("scaling policy cpu (SIMPLE)",)}


@pytest.mark.parametrize(("page", "pages"), [(1, 3), (2, 2), (100, 1)])
def test_all_pages_count(page, pages):
    """A refresh asks for none of the lists."""

    async def story(here):
        here.fake.policies = [policy(name) for name in "abc"]
        cloud = here.connect()
        await cloud.refresh()
        assert not {POLICIES, ACTIONS} & set(here.fake.calls)
        assert await cloud.scaling_policies() == {
            "asg-web": tuple(f"scaling policy {name} (SIMPLE)" for name in "abc")
        }
        return here.fake.calls.count(POLICIES), here.fake.calls.count(ACTIONS)

    assert Tencent(page=page).with_groups().play(story) == (pages, 1)


def test_many_groups_are_asked_for_five_at_a_time():
    """A filter takes no more."""
    here = Tencent(page=100)
    names = [f"asg-{number}" for number in range(6)]
    for name in names:
        here.fleet.add(name)
    here.named(*((name, 0, 3) for name in names))
    assert list(here.play(scaling_policies, [policy("cpu", name) for name in names])) == names
    assert here.fake.calls.count(POLICIES) == 2


def test_a_group_that_was_created_goes_by_its_name():
    """As in all that the provider says of it."""
    here = Tencent(page=100).with_pattern()

    async def story(here):
        cloud = here.connect()
        await cloud.refresh()
        candidates = await cloud.group_candidates()
        made = await cloud.create_group(candidates[0].new)
        here.fake.policies = [policy("cpu", here.created(made.id))]
        assert await cloud.scaling_policies() == {made.id: ("scaling policy cpu (SIMPLE)",)}

    here.play(story)


@pytest.mark.parametrize("call", [POLICIES, ACTIONS])
def test_a_refusal_names_the_right_that_is_missing(call):
    """Other errors are as they came."""

    async def story(here):
        for code, words in (
            ("UnauthorizedOperation", f"RequestId=r; allow as:{call}"),
            ("InvalidFilter", "RequestId=r"),
        ):
            here.fake.errors = [(call, code)]
            with pytest.raises(CloudError) as refused:
                await here.connect().scaling_policies()
            assert str(refused.value).endswith(words)
            assert (refused.value.cause == "Permission") == (code == "UnauthorizedOperation")

    Tencent().with_groups().play(story)


def test_an_entry_that_cannot_be_read_hides_no_other():
    """Where it is the only one, it is an error that names it."""
    odd = policy("odd", ScalingPolicyName={"new": 1})
    assert found(policies=[odd, policy("cpu")]) == {"asg-web": ("scaling policy cpu (SIMPLE)",)}
    assert found(policies=[odd], actions=[action("night")]) == {
        "asg-web": ("scheduled action night (0 20 * * *)",)
    }
    with pytest.raises(CloudError, match="answer on asp-odd cannot be read"):
        found(policies=[odd])
    with pytest.raises(CloudError, match="answer on asst-odd cannot be read"):
        found(actions=[action("odd", Recurrence=[1])])

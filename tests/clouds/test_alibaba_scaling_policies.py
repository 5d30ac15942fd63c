"""Rules, alarms and tasks of Alibaba Cloud that change the sizes of groups, as `kubetide doctor` asks for them."""

from __future__ import annotations

import pytest
from tests.clouds.vendors import Alibaba

from kubetide.ports.errors import CloudError

RULES, ALARMS, TASKS = "DescribeScalingRules", "DescribeAlarms", "DescribeScheduledTasks"


def ari(name):
    return f"ari:acs:ess:cn-hangzhou:1406926474060000:scalingrule/asr-{name}"


def rule(name, kind="SimpleScalingRule", group="asg-web", **more):
    """Return a scaling rule of a group, as the API describes it."""
    return {
        "ScalingRuleId": f"asr-{name}",
        "ScalingRuleName": name,
        "ScalingRuleAri": ari(name),
        "ScalingRuleType": kind,
        "ScalingGroupId": group,
        "AdjustmentType": "QuantityChangeInCapacity",
        "AdjustmentValue": 1,
        "MinSize": 0,
        "MaxSize": 3,
        "Alarms": {"Alarm": []},
        "StepAdjustments": {"StepAdjustment": []},
        **more,
    }


def alarm(name, *rules, group="asg-web", **more):
    """Return an alarm of a group that executes these rules, as the API describes it."""
    return {
        "AlarmTaskId": f"{group}_{name}",
        "Name": name,
        "Enable": True,
        "State": "OK",
        "ScalingGroupId": group,
        "AlarmActions": {"AlarmAction": [ari(one) for one in rules]},
        "MetricType": "system",
        "MetricName": "CpuUtilization",
        "ComparisonOperator": ">=",
        "Statistics": "Average",
        "Threshold": 80.0,
        "Period": 60,
        "EvaluationCount": 3,
        "Dimensions": {"Dimension": [{"DimensionKey": "scaling_group", "DimensionValue": group}]},
        **more,
    }


def task(name, **more):
    """Return a scheduled task that recurs for years, as the API describes it."""
    return {
        "ScheduledTaskId": f"edRtShc57WGXdt8TlPbr-{name}",
        "ScheduledTaskName": name,
        "TaskEnabled": True,
        "LaunchTime": "2026-01-01T12:00Z",
        "LaunchExpirationTime": 600,
        "RecurrenceType": "Daily",
        "RecurrenceValue": "1",
        "RecurrenceEndTime": "2028-01-01T12:00Z",
        **more,
    }


TRACKING = rule("cpu", "TargetTrackingScalingRule", DisableScaleIn=True, TargetValue=50.0)
PREDICTIVE = rule("days", "PredictiveScalingRule", PredictiveScalingMode="PredictAndScale")


async def scaling_policies(here, rules=(), alarms=(), tasks=()):
    """Return what a new provider says of these rules, alarms and tasks of the region."""
    here.fake.rules, here.fake.alarms, here.fake.tasks = list(rules), list(alarms), list(tasks)
    return await here.connect().scaling_policies()


def found(rules=(), alarms=(), tasks=(), **web):
    """Return what changes the sizes of two groups; ``web`` is what one of them has besides the rest."""
    here = Alibaba().with_groups()
    here.fake.groups["asg-web"] = web
    return here.play(scaling_policies, rules, alarms, tasks)


def test_groups_without_any_are_left_out():
    """Nothing is found where there is nothing, and of groups that are not the provider's."""
    other = {"group": "asg-other"}
    assert found() == {}
    assert (
        found(
            [rule("cpu", "TargetTrackingScalingRule", **other), rule("add", **other)],
            [alarm("high", "add", **other)],
            [task("night", ScheduledAction=ari("add")), task("day", ScalingGroupId="asg-other")],
        )
        == {}
    )


@pytest.mark.parametrize(
    ("one", "summary"),
    [
        (TRACKING, "scaling rule cpu (TargetTrackingScalingRule)"),
        (PREDICTIVE, "scaling rule days (PredictiveScalingRule)"),
        ({**PREDICTIVE, "PredictiveScalingMode": "PredictOnly"}, ""),
        (rule("add"), ""),
        (rule("steps", "StepScalingRule"), ""),
    ],
)
def test_rules_that_nothing_executes_are_left_out(one, summary):
    """Upstream's provider makes such, and executes them itself. A rule that only adds machines counts."""
    assert found([one]) == ({"asg-web": (summary,)} if summary else {})


@pytest.mark.parametrize(
    ("one", "summaries"),
    [
        (alarm("high", "add"), ("alarm high (scaling rule add)",)),
        (alarm("high", "steps", "add"), ("alarm high (scaling rule add)", "alarm high (scaling rule steps)")),
        (alarm("high", "add", Enable=False), ()),
        (alarm("high", "add", Enable=None), ("alarm high (scaling rule add)",)),
        (alarm("high"), ()),
        (alarm("high", AlarmActions=None), ()),
        (alarm("high", "add", group="asg-system"), ("alarm high (scaling rule add)",)),
        (alarm("high", "unknown"), ("alarm high",)),
    ],
)
def test_alarms_act_on_the_groups_of_their_rules(one, summaries):
    """An alarm that is off, or that executes no rule, changes nothing."""
    rules = [rule("add"), rule("steps", "StepScalingRule")]
    assert found(rules, [one]) == ({"asg-web": summaries} if summaries else {})


def test_the_alarms_of_a_rule_that_acts_alone_are_not_named_besides():
    """Auto Scaling makes two of them for each such rule."""
    name = "TargetTracking-asr-cpu-AlarmLow-3f4730b9"
    assert found([TRACKING], [alarm(name, "cpu")]) == {
        "asg-web": ("scaling rule cpu (TargetTrackingScalingRule)",)
    }


@pytest.mark.parametrize(
    ("more", "when"),
    [
        ({"ScheduledAction": ari("add")}, "Daily 1"),
        ({"ScalingGroupId": "asg-web", "MinValue": 1, "MaxValue": 2, "DesiredCapacity": 1}, "Daily 1"),
        ({"ScheduledAction": ari("add"), "ScalingGroupId": "asg-web"}, "Daily 1"),
        ({"ScheduledAction": ari("unknown"), "ScalingGroupId": "asg-web"}, "Daily 1"),
        ({"ScheduledAction": ari("unknown")}, ""),
        ({"ScheduledAction": ari("add"), "TaskEnabled": False}, ""),
        ({"ScheduledAction": ari("add"), "RecurrenceEndTime": "2026-03-01T23:59Z"}, ""),
        ({"ScheduledAction": ari("add"), "RecurrenceEndTime": "2026-03-02T00:00Z"}, "Daily 1"),
        ({"ScheduledAction": ari("add"), "RecurrenceEndTime": None}, "Daily 1"),
        ({"ScheduledAction": ari("add"), "RecurrenceType": None, "RecurrenceEndTime": None}, ""),
        (
            {"ScheduledAction": ari("add"), "RecurrenceType": "", "LaunchTime": "2026-03-02T00:01Z"},
            "2026-03-02T00:01Z",
        ),
    ],
)
def test_scheduled_tasks_that_are_to_come(more, when):
    """A task is of the group of its rule, or of that whose sizes it sets. The API lists those that have ended on."""
    expected = {"asg-web": (f"scheduled task night ({when})",)} if when else {}
    assert found([rule("add")], tasks=[task("night", **more)]) == expected


@pytest.mark.parametrize(
    ("web", "summaries"),
    [
        (
            {"SuspendedProcesses": {"SuspendedProcess": ["ScaleIn", "AlarmNotification"]}},
            ("scaling rule days (PredictiveScalingRule)", "scheduled task night (Daily 1)"),
        ),
        (
            {"SuspendedProcesses": {"SuspendedProcess": ["ScheduledAction"]}},
            ("alarm high (scaling rule add)", "scaling rule cpu (TargetTrackingScalingRule)"),
        ),
        ({"LifecycleState": "Inactive"}, ()),
    ],
)
def test_suspended_processes_change_nothing(web, summaries):
    """Neither does anything in a group that is disabled."""
    rules = [TRACKING, PREDICTIVE, rule("add")]
    told = found(rules, [alarm("high", "add")], [task("night", ScheduledAction=ari("add"))], **web)
    assert told == ({"asg-web": summaries} if summaries else {})


@pytest.mark.parametrize(("count", "pages"), [(50, 1), (51, 2)])
def test_all_pages_count_and_groups_are_ordered(count, pages):
    """A refresh asks for none of the lists."""

    async def story(here):
        here.fake.rules = [rule(f"add-{number}") for number in range(count - 1)] + [TRACKING]
        here.fake.alarms = [alarm(f"off-{number}", "add-1", Enable=False) for number in range(count - 1)]
        here.fake.alarms += [alarm("high", "add-0")]
        here.fake.tasks = [task(f"off-{number}", TaskEnabled=False) for number in range(count - 1)]
        here.fake.tasks += [task("night", ScalingGroupId="asg-system")]
        cloud = here.connect()
        await cloud.refresh()
        assert not {RULES, ALARMS, TASKS} & set(here.fake.calls)
        assert list((await cloud.scaling_policies()).items()) == [
            ("asg-system", ("scheduled task night (Daily 1)",)),
            ("asg-web", ("alarm high (scaling rule add-0)", "scaling rule cpu (TargetTrackingScalingRule)")),
        ]
        return [here.fake.calls.count(one) for one in (RULES, ALARMS, TASKS)]

    assert Alibaba().with_groups().play(story) == [pages] * 3


def test_a_group_that_was_created_goes_by_its_name():
    """As in all that the provider says of it."""

    async def story(here):
        cloud = here.connect()
        await cloud.refresh()
        candidates = await cloud.group_candidates()
        made = await cloud.create_group(candidates[0].new)
        here.fake.tasks = [task("night", ScalingGroupId=here.created(made.id))]
        assert await cloud.scaling_policies() == {made.id: ("scheduled task night (Daily 1)",)}

    Alibaba().with_pattern().play(story)


@pytest.mark.parametrize("call", [RULES, ALARMS, TASKS])
def test_a_refusal_names_the_right_that_is_missing(call):
    """Other errors are as they came."""

    async def story(here):
        for code, status, words in (
            ("Forbidden.RAM", 403, f"(request r); allow ess:{call}"),
            ("InvalidParameter", 400, "(request r)"),
        ):
            here.fake.errors = [(call, code, status)]
            with pytest.raises(CloudError) as refused:
                await here.connect().scaling_policies()
            assert str(refused.value) == f"{code}: {code} {words}"
            assert (refused.value.cause == "Permission") == (status == 403)

    Alibaba().with_groups().play(story)


def test_an_entry_that_cannot_be_read_hides_no_other():
    """An alarm whose rule cannot be read is of the group that it watches. Where nothing is found, the error names the entry."""
    odd = rule("odd", ScalingRuleName={"new": 1})
    assert found([odd, TRACKING], [alarm("high", "odd")]) == {
        "asg-web": ("alarm high", "scaling rule cpu (TargetTrackingScalingRule)")
    }
    with pytest.raises(CloudError, match="answer on asr-odd cannot be read"):
        found([odd])
    with pytest.raises(CloudError, match="answer on asg-web_odd cannot be read"):
        found(alarms=[alarm("odd", "add", Enable="perhaps")])
    with pytest.raises(CloudError, match="answer on edRtShc57WGXdt8TlPbr-odd cannot be read"):
        found(tasks=[task("odd", LaunchTime=[1])])

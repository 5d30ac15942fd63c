"""What AWS scales by itself: which policies and actions count, and that the doctor finds them."""

from __future__ import annotations

import pytest

from kubetide.clouds.aws.groups import read_group
from kubetide.clouds.aws.scaling_policies import scaling_policies

ALARM = [{"AlarmName": "cpu"}]


def group(name, *suspended):
    processes = [{"ProcessName": one} for one in suspended]
    return read_group({"AutoScalingGroupName": name, "SuspendedProcesses": processes})


def policy(kind, *, of="g", **fields):
    return {"AutoScalingGroupName": of, "PolicyName": "p", "PolicyType": kind, **fields}


def predictive(mode):
    return policy("PredictiveScaling", PredictiveScalingConfiguration={"Mode": mode})


def found(*policies, actions=(), suspended=()):
    groups = {"g": group("g", *suspended), "other": group("other")}
    return scaling_policies(groups, policies, actions)


@pytest.mark.parametrize(
    ("one", "acts"),
    [
        (policy("TargetTrackingScaling", Alarms=ALARM, Enabled=True), True),
        (policy("TargetTrackingScaling"), True),
        (policy("TargetTrackingScaling", Enabled=False), False),
        (policy("StepScaling", Alarms=ALARM), True),
        (policy("StepScaling"), False),
        (policy("SimpleScaling", Alarms=[]), False),
        (predictive("ForecastAndScale"), True),
        (predictive("ForecastOnly"), False),
        (policy("TargetTrackingScaling", of="not ours"), False),
        ({}, False),
    ],
)
def test_policies_that_act_by_themselves(one, acts):
    """A policy that is off, that nothing calls or that only forecasts is none; neither is one of another group."""
    kind = one.get("PolicyType")
    assert found(one) == ({"g": (f"scaling policy p ({kind})",)} if acts else {})


def test_scheduled_actions():
    """Each is named with its time; all of a group are in order."""
    actions = [
        {"AutoScalingGroupName": "g", "ScheduledActionName": "night", "Recurrence": "0 20 * * *"},
        {"AutoScalingGroupName": "g", "ScheduledActionName": "day"},
    ]
    assert found(predictive("ForecastAndScale"), actions=actions) == {
        "g": (
            "scaling policy p (PredictiveScaling)",
            "scheduled action day",
            "scheduled action night (0 20 * * *)",
        )
    }


def test_suspended_processes_change_nothing():
    """A group whose alarms and schedules are suspended is left alone by AWS."""
    tracking = policy("TargetTrackingScaling", Alarms=ALARM)
    action = {"AutoScalingGroupName": "g", "ScheduledActionName": "night"}
    assert found(tracking, actions=[action], suspended=("AlarmNotification", "ScheduledActions")) == {}
    assert found(tracking, actions=[action], suspended=("AlarmNotification",)) == {
        "g": ("scheduled action night",)
    }

"""Converts time tables to schedule sections and back. What a form cannot express is refused, never left out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from kubetide.elastic.convert.origin import NotConvertible
from kubetide.objects.base import Json
from kubetide.objects.kinds import CRON_HPAS, HPAS, HPCS, TKESTACK_CRON_HPAS, Kind

_SIX: Final = 6


class Form(NamedTuple):
    """How one kind of time table is converted.

    Attributes:
        kind: Where it is served.
        target: The field of ``spec`` that names its target.
        read: Returns the rules of a schedule section, of an object's spec and whether it bounds an HPA.
        write: Returns the spec without its target, of the rules and whether it is to bound an HPA.
    """

    kind: Kind[Json]
    target: str
    read: Callable[[Json, bool], list[Json]]
    write: Callable[[Sequence[Json], bool], Json]


def is_hpa(reference: Json) -> bool:
    """Return whether a time table's target is an HPA."""
    group = str(reference.get("apiVersion") or "").partition("/")[0]
    return str(reference.get("kind") or "").lower() == HPAS.kind.lower() and group == HPAS.group


def target_problems(reference: Json) -> list[str]:
    """Return why nothing can scale a target."""
    return ["spec.targetRef: an HPA has no scale; name its target"] if is_hpa(reference) else []


def _exclusions(entry: Json) -> Json:
    return {"excludeDates": entry["excludeDates"]} if entry.get("excludeDates") else {}


def _six_exclusions(entry: Json, what: str, kind: Kind[Any], *, descriptors: bool = False) -> Json:
    """Return the dates that a rule leaves out, for a kind whose seconds stand first. Raises NotConvertible."""
    found = []
    for text in entry.get("excludeDates") or ():
        if text.startswith("@") and not descriptors:
            raise NotConvertible(f"{what}: excludeDates {text!r}: {kind.kind} has no {text.split()[0]}")
        short = not text.startswith("@") and len(text.split()) != _SIX
        found.append(f"0 {text}" if short else text)
    return {"excludeDates": found} if found else {}


def _check_six(texts: Iterable[object], what: str, *, descriptors: bool = False) -> None:
    """Raise NotConvertible for a text that an ElasticWorkload reads in another way, or not at all.

    Args:
        texts: Of the kind whose seconds stand first: five fields would be read from the minutes on.
        what: Where they stand.
        descriptors: Whether the kind has ``@daily`` and the like.
    """
    for text in map(str, texts):
        if descriptors and text.startswith("@"):
            continue
        fields = text.split()
        if len(fields) != _SIX:
            raise NotConvertible(f"{what} {text!r}: write six fields")
        if any("?" in fields[place] for place in (0, 1, 2, 4)):
            raise NotConvertible(f"{what} {text!r}: ? stands for days only; write *")


def _only(entry: Json, allowed: Sequence[str], what: str) -> None:
    for name in entry:
        if name not in allowed:
            raise NotConvertible(f"{what}: {name} has no counterpart")


def _name_of(entry: Json, what: str) -> str:
    if not entry.get("name"):
        raise NotConvertible(f"{what}: has no name")
    return str(entry["name"])


# ── HorizontalPodCronscaler ──


def _read_hpc(spec: Json, bounds: bool) -> list[Json]:
    _only(spec, ("scaleTarget", "crons"), "spec")
    found = []
    for place, cron in enumerate(spec.get("crons") or ()):
        what = f"crons[{place}]"
        _only(cron, ("name", "schedule", "targetSize", "minSize", "maxSize", "excludeDates"), what)
        size, low, high = (cron.get(name) for name in ("targetSize", "minSize", "maxSize"))
        if bounds:
            sizes = {"minReplicas": low, "maxReplicas": high}
            if size is not None:
                if not size == low == high:
                    raise NotConvertible(
                        f"{what}: targetSize beside other bounds of an HPA has no counterpart"
                    )
                sizes = {"replicas": size}
        elif low is not None or high is not None:
            raise NotConvertible(f"{what}: minSize and maxSize of a workload have no effect; leave them out")
        else:
            sizes = {"replicas": size}
        sizes = {name: value for name, value in sizes.items() if value is not None}
        if not sizes:
            raise NotConvertible(f"{what}: names no size")
        _check_six([cron.get("schedule")], f"{what}: schedule")
        _check_six(cron.get("excludeDates") or (), f"{what}: excludeDates")
        found.append({"name": _name_of(cron, what), "at": cron.get("schedule"), **sizes, **_exclusions(cron)})
    return found


def _write_hpc(rules: Sequence[Json], bounds: bool) -> Json:
    crons = []
    for rule in rules:
        what = f"rule {rule['name']}"
        _points_only(rule, what, HPCS)
        fields = rule["at"].split()
        if rule["at"].startswith("@"):
            raise NotConvertible(f"{what}: {HPCS.kind} has no {fields[0]}")
        cron: Json = {
            "name": rule["name"],
            "schedule": rule["at"] if len(fields) == _SIX else f"0 {rule['at']}",
        }
        exact = rule.get("replicas")
        if exact is not None:
            cron["targetSize"] = exact
            if bounds:
                cron |= {"minSize": exact, "maxSize": exact}
        elif not bounds:
            raise NotConvertible(
                f"{what}: minReplicas and maxReplicas of a workload without a horizontal section"
            )
        for name, side in (("minReplicas", "minSize"), ("maxReplicas", "maxSize")):
            if rule.get(name) is not None:
                cron[side] = rule[name]
        crons.append({**cron, **_six_exclusions(rule, what, HPCS)})
    return {"crons": crons}


def _points_only(rule: Json, what: str, kind: Kind[Any]) -> None:
    """Raise NotConvertible for what only a schedule section has."""
    if rule.get("start") or rule.get("end"):
        raise NotConvertible(f"{what}: has an end, and {kind.kind} has no windows; write two rules with at")
    if rule.get("timeZone"):
        raise NotConvertible(f"{what}: timeZone {rule['timeZone']}: {kind.kind} has none")
    if rule.get("excludeCalendars"):
        raise NotConvertible(f"{what}: excludeCalendars: {kind.kind} has none; write excludeDates")


# ── CronHPA of TKEStack ──


def _no_hpa(bounds: bool, kind: Kind[Any]) -> None:
    if bounds:
        raise NotConvertible(
            f"{kind.kind} of an HPA: it has sizes, not bounds; write floors and ceilings by hand"
        )


def _read_tkestack(spec: Json, bounds: bool) -> list[Json]:
    _no_hpa(bounds, TKESTACK_CRON_HPAS)
    _only(spec, ("scaleTargetRef", "crons"), "spec")
    found = []
    for place, cron in enumerate(spec.get("crons") or ()):
        _only(cron, ("schedule", "targetReplicas"), f"crons[{place}]")
        _no_pause(cron.get("schedule"), f"crons[{place}]")
        size = cron.get("targetReplicas", 0)
        found.append({"name": f"rule-{place + 1}", "at": cron.get("schedule"), "replicas": size})
    return found


def _no_pause(schedule: object, what: str) -> None:
    if str(schedule).startswith("@every"):
        raise NotConvertible(f"{what}: @every counts from the creation of its object; write a schedule")


def _write_tkestack(rules: Sequence[Json], bounds: bool) -> Json:
    _no_hpa(bounds, TKESTACK_CRON_HPAS)
    crons = []
    for place, rule in enumerate(rules):
        what = f"rule {rule['name']}"
        _points_only(rule, what, TKESTACK_CRON_HPAS)
        if rule["name"] != f"rule-{place + 1}":
            raise NotConvertible(f"{what}: {TKESTACK_CRON_HPAS.kind} has no names; call it rule-{place + 1}")
        if rule.get("replicas") is None or rule.get("excludeDates"):
            raise NotConvertible(f"{what}: {TKESTACK_CRON_HPAS.kind} has replicas only")
        if len(rule["at"].split()) == _SIX or rule["at"].startswith("@date"):
            raise NotConvertible(f"{what}: {rule['at']!r}: {TKESTACK_CRON_HPAS.kind} has five fields")
        crons.append({"schedule": rule["at"], "targetReplicas": rule["replicas"]})
    return {"crons": crons}


# ── CronHorizontalPodAutoscaler of Alibaba ──


def _read_alibaba(spec: Json, bounds: bool) -> list[Json]:
    _no_hpa(bounds, CRON_HPAS)
    _only(spec, ("scaleTargetRef", "jobs", "excludeDates"), "spec")
    _check_six(spec.get("excludeDates") or (), "excludeDates", descriptors=True)
    found = []
    for place, job in enumerate(spec.get("jobs") or ()):
        what = f"jobs[{place}]"
        _only(job, ("name", "schedule", "targetSize", "runOnce"), what)
        if job.get("runOnce"):
            raise NotConvertible(f"{what}: runOnce has no counterpart; write @date with the time")
        _no_pause(job.get("schedule"), what)
        _check_six([job.get("schedule")], f"{what}: schedule", descriptors=True)
        rule = {"name": _name_of(job, what), "at": job.get("schedule"), "replicas": job.get("targetSize", 0)}
        found.append({**rule, **_exclusions(spec)})
    return found


def _write_alibaba(rules: Sequence[Json], bounds: bool) -> Json:
    _no_hpa(bounds, CRON_HPAS)
    jobs = []
    for rule in rules:
        what = f"rule {rule['name']}"
        _points_only(rule, what, CRON_HPAS)
        if rule.get("replicas") is None:
            raise NotConvertible(f"{what}: {CRON_HPAS.kind} has replicas only")
        if (rule.get("excludeDates") or []) != (rules[0].get("excludeDates") or []):
            raise NotConvertible(f"{what}: excludeDates: {CRON_HPAS.kind} has the same for all rules")
        fields = rule["at"].split()
        short = not rule["at"].startswith("@") and len(fields) != _SIX
        at = f"0 {rule['at']}" if short else rule["at"]
        jobs.append({"name": rule["name"], "schedule": at, "targetSize": rule["replicas"]})
    excluded = (
        _six_exclusions(rules[0], f"rule {rules[0]['name']}", CRON_HPAS, descriptors=True) if rules else {}
    )
    return {**excluded, "jobs": jobs}


FORMS: Final[Mapping[str, Form]] = {
    form.kind.kind: form
    for form in (
        Form(HPCS.untyped, "scaleTarget", _read_hpc, _write_hpc),
        Form(TKESTACK_CRON_HPAS.untyped, "scaleTargetRef", _read_tkestack, _write_tkestack),
        Form(CRON_HPAS.untyped, "scaleTargetRef", _read_alibaba, _write_alibaba),
    )
}
"""By kind; the first is what a schedule section becomes that came from none."""

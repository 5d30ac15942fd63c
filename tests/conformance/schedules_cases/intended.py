"""The intended effect of a time table, computed the slow way: every activation of every rule, listed by local day."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from kubetide.units.cron import CronError, Every, Grammar, Spec, parse_cron
from kubetide.units.time import parse_rfc3339

_NS = 1_000_000_000
_SIX = Grammar(seconds=True, weekday_optional=True, zones=False)
_FIVE = Grammar(zones=False)


class Rule(NamedTuple):
    name: str
    due: list[int]
    off: set[date]
    size: int
    once: bool


def instant(text: str) -> int:
    """Seconds since 1970."""
    return parse_rfc3339(text) // _NS


def text_of(at: int) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def zone_changes(case: Any) -> bool:
    """Whether the clocks of the process change during the case, or within two days of it."""
    given = case["input"]
    at, end = instant(given["start"]) - 172_800, instant(given["until"]) + 172_800
    zone = ZoneInfo(given["process_zone"])
    offsets = {datetime.fromtimestamp(one, zone).utcoffset() for one in range(at, end, 43_200)}
    return len(offsets) > 1


def activations(
    text: str, zone: ZoneInfo, created: int, first: int, last: int, *, six: bool
) -> list[int] | None:
    """Every activation in a span, ascending; None for a text that is no schedule."""
    if six and text.startswith("@date "):
        if text.startswith("@date  "):
            return None
        try:
            local = datetime.strptime(text, "@date %Y-%m-%d %H:%M:%S")  # noqa: DTZ007  the zone follows
        except ValueError:
            return None
        found = {resolved(local, zone)}
        return sorted(at for at in found if first <= at <= last)
    try:
        spec = parse_cron(text, _SIX if six else _FIVE)
    except CronError:
        return None
    if isinstance(spec, Every):
        pause = spec.pause // _NS
        return [at for at in range(created + pause, last + 1, pause) if at >= first]
    found = set()
    day = datetime.fromtimestamp(first, zone).date() - timedelta(days=1)
    final = datetime.fromtimestamp(last, zone).date() + timedelta(days=1)
    while day <= final:
        if spec.on(day):
            found |= {resolved(local, zone) for local in wall_clocks(spec, day)}
        day += timedelta(days=1)
    return sorted(at for at in found if first <= at <= last)


def wall_clocks(spec: Spec, day: date) -> list[datetime]:
    return [
        datetime(day.year, day.month, day.day, hour, minute, second)  # noqa: DTZ001  a wall clock without a zone
        for hour in range(24)
        if spec.hours >> hour & 1
        for minute in range(60)
        if spec.minutes >> minute & 1
        for second in range(60)
        if spec.seconds >> second & 1
    ]


def resolved(local: datetime, zone: ZoneInfo) -> int:
    """The first instant that shows the wall clock, or else the first whole minute that shows a later one."""
    around = int(local.replace(tzinfo=UTC).timestamp())
    first = int(local.replace(tzinfo=zone, fold=0).timestamp())
    if datetime.fromtimestamp(first, zone).replace(tzinfo=None) == local:
        return first
    return next(
        at
        for at in range(around - around % 60 - 16 * 3600, around + 30 * 3600, 60)
        if datetime.fromtimestamp(at, zone).replace(tzinfo=None) > local
    )


def off_dates(expressions: list[str], zone: ZoneInfo, first: int, last: int) -> set[date]:
    """The local dates on which any expression has an activation at any second."""
    found: set[date] = set()
    for text in expressions:
        begin, end = first - 3 * 86_400, last + 3 * 86_400
        if text.startswith("@date "):
            found.add(date.fromisoformat(text.split()[1]))
            continue
        try:
            spec = parse_cron(text, _SIX)
        except CronError:
            continue
        if isinstance(spec, Spec):
            day = datetime.fromtimestamp(begin, zone).date()
            while day <= datetime.fromtimestamp(end, zone).date():
                if spec.on(day):
                    found.add(day)
                day += timedelta(days=1)
    return found


class World(NamedTuple):
    """The expected results: writes as (when, workload, size), and the sizes at the end."""

    writes: list[tuple[str, str, int]]
    workloads: dict[str, int]


PLURALS = {"Deployment": "deployments", "StatefulSet": "statefulsets", "Game": "games"}


def intended(case: Any) -> World:
    """Play a case the slow way: at each look, of what became due since the last, the latest holds."""
    given = case["input"]
    six = case["_system"] == "alibaba"
    zone = ZoneInfo(given["process_zone"])
    start, until = instant(given["start"]), instant(given["until"])
    steps = sorted(given.get("steps") or [], key=lambda step: instant(step["at"]))
    objects = {one["name"]: one for one in given["objects"]}
    sizes, writes = dict(given["workloads"]), []
    created = dict.fromkeys(objects, start)
    since: dict[tuple[str, str], int] = {}
    done: set[tuple[str, str]] = set()

    def rules(one: Any) -> list[Rule]:
        found, names = [], set()
        begin = min(
            start, instant(one.get("lastScheduleTime") or one.get("creationTimestamp") or given["start"])
        )
        born = created[one["name"]] if six else instant(one["creationTimestamp"])
        for place, entry in enumerate(one.get("jobs") or one.get("crons") or []):
            name, size = (
                entry.get("name", str(place)),
                entry.get("targetSize", entry.get("targetReplicas", 0)),
            )
            due = activations(entry["schedule"], zone, born, begin, until, six=six)
            if due is not None and size >= 0 and not (six and name in names):
                off = off_dates(one.get("excludeDates") or [], zone, begin, until)
                found.append(Rule(name, due, off, size, bool(entry.get("runOnce"))))
            names.add(name)
        return found

    known = {name: rules(one) for name, one in objects.items()}
    if six:
        since = {(name, rule.name): start for name, found in known.items() for rule in found}
        looks = {start, *(instant(step["at"]) for step in steps)}
        looks |= {at for found in known.values() for rule in found for at in rule.due if start <= at <= until}
    else:
        since = {
            (name, ""): instant(one.get("lastScheduleTime") or one["creationTimestamp"])
            for name, one in objects.items()
        }
        looks = set(range(start, until, 10))
    up, pending = True, list(steps)
    todo = sorted(looks)
    while todo:
        now = todo.pop(0)
        while pending and instant(pending[0]["at"]) <= now:
            step = pending.pop(0)
            up = {"controller_down": False, "controller_up": True}.get(step["op"], up)
            if step["op"] == "workload":
                sizes[step["name"]] = step["n"]
            elif step["op"] == "delete":
                objects.pop(step["name"], None)
            elif step["op"] == "apply":
                new = step["object"]
                old = objects.get(new["name"])
                objects[new["name"]] = new
                created.setdefault(new["name"], now)
                known[new["name"]] = rules(new)
                if six:
                    _resubmit(old, new, since, done, now)
                    extra = {at for rule in known[new["name"]] for at in rule.due if now < at <= until}
                    todo = sorted({*todo, *extra})
        if not up:
            continue
        for name in sorted(objects):
            one = objects[name]
            target = f"{PLURALS.get(one['target_kind'])}/{one['target_name']}"
            due = []
            for place, rule in enumerate(known[name]):
                key = (name, rule.name if six else "")
                if (name, rule.name) in done:
                    continue
                found = [
                    at
                    for at in rule.due
                    if since[key] < at <= now and datetime.fromtimestamp(at, zone).date() not in rule.off
                ]
                if found:
                    due.append((found[-1], -place, rule))
            if six:
                since.update({(name, rule.name): now for rule in known[name]})
            latest = max((at for at, _, _ in due), default=None)
            run = [one for one in sorted(due, key=lambda one: -one[1]) if one[0] == latest]
            for _, _, rule in run if six else run[:1]:
                since[name, ""] = now
                if rule.once:
                    done.add((name, rule.name))
                if target in sizes and (six or sizes[target] != rule.size):
                    writes.append((text_of(now), target, rule.size))
                    sizes[target] = rule.size
    return World(writes, sizes)


def _resubmit(old: Any, new: Any, since: dict[Any, int], done: set[Any], now: int) -> None:
    """A job that changed counts from now on; with another target or other dates all do."""
    fields = ("target_apiVersion", "target_kind", "target_name")
    same = old is not None and all(old[one] == new[one] for one in fields)
    same = same and (old.get("excludeDates") or []) == (new.get("excludeDates") or [])
    before = {job["name"]: job for job in old["jobs"]} if same else {}
    for job in new["jobs"]:
        key = (new["name"], job["name"])
        if before.get(job["name"]) != job or key not in since:
            since[key] = now
            done.discard(key)

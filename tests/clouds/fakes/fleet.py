"""Machines of a pretended cloud: they take time to show up, to boot and to end, and may be sold out."""

from __future__ import annotations

from dataclasses import dataclass, field

from kubetide.units.time import Duration, Instant, after, parse_rfc3339, seconds


class Clock:
    """A time that passes when somebody waits."""

    def __init__(self):
        self.time = parse_rfc3339("2026-03-02T00:00:00Z")

    def now(self) -> Instant:
        return self.time

    def monotonic(self) -> Duration:
        return Duration(self.time)

    async def sleep(self, duration):
        self.time = after(self.time, duration)


@dataclass
class Machine:
    name: str
    shown_from: Instant
    boots_until: Instant
    ends_at: Instant | None = None


@dataclass
class Group:
    target: int = 0
    machines: list[Machine] = field(default_factory=list)


@dataclass
class Fleet:
    """Groups by name. A new machine is in no list for ``shown_s``; groups of ``sold_out`` grow in their
    target only, new machines of ``stuck`` ones never run."""

    clock: Clock
    boot_s: int = 5
    end_s: int = 3
    shown_s: int = 1
    groups: dict[str, Group] = field(default_factory=dict)
    sold_out: set[str] = field(default_factory=set)
    stuck: set[str] = field(default_factory=set)
    made: int = 0

    def add(self, name, running=0):
        self.groups[name] = Group()
        self.grow(name, running)
        for machine in self.groups[name].machines:
            machine.shown_from = machine.boots_until = self.clock.now()

    def grow(self, name, count, names=()):
        group = self.groups[name]
        group.target += count
        for number in range(0 if name in self.sold_out else count):
            self.made += 1
            own = names[number] if names else f"m{self.made}"
            now = self.clock.now()
            group.machines.append(
                Machine(
                    own,
                    after(now, seconds(self.shown_s)),
                    after(now, seconds(10**6 if name in self.stuck else self.boot_s)),
                )
            )

    def set_target(self, name, target):
        """Request that many machines, as a cloud does that creates and deletes them by itself."""
        count = target - self.groups[name].target
        if count >= 0:
            self.grow(name, count)
            return
        group, now = self.groups[name], self.clock.now()
        group.target = target
        newest = sorted(
            (one for one in group.machines if one.ends_at is None), key=lambda one: -one.boots_until
        )
        for machine in newest[: max(len(newest) - target, 0)]:
            machine.ends_at = now if machine.shown_from > now else after(now, seconds(self.end_s))

    def end(self, name, machine_name):
        """End a machine and lower the target; one that ends already, or is unknown, changes nothing."""
        for machine in self.living(name):
            if machine.name == machine_name:
                machine.ends_at = after(self.clock.now(), seconds(self.end_s))
                self.groups[name].target -= 1
                return True
        return False

    def machines(self, name):
        now, group = self.clock.now(), self.groups[name]
        group.machines = [one for one in group.machines if one.ends_at is None or one.ends_at > now]
        return [one for one in group.machines if one.shown_from <= now]

    def living(self, name):
        return [one for one in self.machines(name) if one.ends_at is None]

    def state(self, machine):
        if machine.ends_at is not None:
            return "Deleting"
        return "Creating" if machine.boots_until > self.clock.now() else "Running"

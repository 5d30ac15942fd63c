"""A container that ends by itself or is killed: terminated, waiting for its back-off, running again, ready.

Source: kubelet v1.36. The first restart follows at once, the next ones after 10 s, 20 s and so on up to 5 min; a
container that ran for 10 min begins anew. ``restartCount`` rises with the restart, ``lastState`` keeps how it ended.
"""

from __future__ import annotations

from kubetide.embedded.agenda import Agenda
from kubetide.embedded.kubelet.life import Do, Life, Step
from kubetide.embedded.kubelet.statuses import stopped_status, termination
from kubetide.embedded.kubelet.times import Timing
from kubetide.embedded.kubelet.writer import Writer
from kubetide.objects.meta import Key
from kubetide.objects.pod import Pod
from kubetide.units.time import Duration, Instant, after, between, format_rfc3339, minutes, seconds

_FIRST_BACK_OFF = seconds(10)
_LONGEST_BACK_OFF = minutes(5)
_FORGIVEN_AFTER = minutes(10)
_LOOK = seconds(1)
"""After this time the kubelet has seen that a container ended, and says that it waits."""


class Crashes:
    """Writes what becomes of containers that end before their time."""

    def __init__(self, agenda: Agenda[Step], writer: Writer, timing: Timing) -> None:
        self._agenda = agenda
        self._writer = writer
        self._timing = timing

    async def do(self, step: Step, life: Life, pod: Pod, now: Instant) -> None:
        """Do a step of a crash. Raises what the port raises."""
        if step.do == "crash":
            await self._end(step.key, life, pod, now)
        elif step.do == "wait":
            await self._wait(life, pod, now)
        else:
            await self._start(step.key, life, pod, now)

    async def _end(self, key: Key, life: Life, pod: Pod, now: Instant) -> None:
        container, reason, exit_code = life.crash
        lives = life.lives(now)
        ended = termination(lives, reason=reason, exit_code=exit_code, now=now)
        await self._writer.patch(pod, stopped_status(pod, lives, container=container, state=ended, since=now))
        life.ended = {**life.ended, container: ended}
        if between(lives.started, now) >= _FORGIVEN_AFTER:
            life.crashes = 0
        back_off = min(_FIRST_BACK_OFF << (life.crashes - 1), _LONGEST_BACK_OFF) if life.crashes else 0
        life.crashes += 1
        if back_off:
            self._put("wait", key, life, after(now, _LOOK))
        begun = self._timing.draw(pod, "start", 100 + life.restarts.get(container, 0))
        self._put("restart", key, life, after(now, Duration(back_off + begun)))

    async def _wait(self, life: Life, pod: Pod, now: Instant) -> None:
        container = life.crash[0]
        waiting = {"waiting": {"reason": "CrashLoopBackOff"}}
        await self._writer.patch(
            pod, stopped_status(pod, life.lives(now), container=container, state=waiting, since=now)
        )

    async def _start(self, key: Key, life: Life, pod: Pod, now: Instant) -> None:
        container = life.crash[0]
        before = life.restarts.get(container, 0)
        life.restarts = {**life.restarts, container: before + 1}
        life.started = now
        running = {"running": {"startedAt": format_rfc3339(now)}}
        try:
            await self._writer.patch(
                pod, stopped_status(pod, life.lives(now), container=container, state=running, since=now)
            )
        except Exception:
            life.restarts = {**life.restarts, container: before}
            raise
        life.restarting = False
        self._put("ready", key, life, after(now, self._timing.draw(pod, "ready", 100 + before)))

    def _put(self, do: Do, key: Key, life: Life, due: Instant) -> None:
        self._agenda.put(due, Step(do, key, life.uid, life.epoch))

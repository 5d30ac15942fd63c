"""How long the steps of a pod's life take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec

from kubetide.embedded.draws import NO_DELAY, Between, Delay
from kubetide.objects.pod import Pod
from kubetide.units.time import Duration, Instant, after, seconds

Step = Literal["pull", "cached", "start", "ready", "work", "stop"]

_PULL = Between(seconds(2), seconds(8))
_START = Between(seconds(1), seconds(3))
_READY = Between(seconds(3), seconds(8))
_WORK = Between(seconds(30), seconds(90))
_STOP = Between(seconds(1), seconds(5))


class PodTimes(msgspec.Struct, frozen=True):
    """Distributions of the steps.

    Attributes:
        pull: From the binding to the images being there, when the node has to fetch one.
        cached: The same when the node has them all.
        start: From there to the containers running; each init container takes as long again.
        ready: From there to the pod being ready.
        work: From the containers running to their end, in a pod of a Job.
        stop: From the deletion to the containers having ended; the grace period bounds it.
    """

    pull: Delay = _PULL
    cached: Delay = NO_DELAY
    start: Delay = _START
    ready: Delay = _READY
    work: Delay = _WORK
    stop: Delay = _STOP


DEFAULT_TIMES = PodTimes()


class Settled(msgspec.Struct, frozen=True):
    """Pods that a kubelet takes on at or before ``until`` count as running and ready since ``since``.

    So a run can begin with a cluster that has been up for long.
    """

    until: Instant
    since: Instant


class Timing:
    """Draws the times of pods, and knows which images are on which node."""

    def __init__(self, seed: int, times: PodTimes, times_of: Callable[[Pod], PodTimes | None] | None) -> None:
        self._seed = seed
        self._times = times
        self._times_of = times_of
        self._images: dict[str, dict[str, Instant]] = {}

    def draw(self, pod: Pod, step: Step, count: int = 0) -> Duration:
        """Return the time of the pod's step; ``count`` distinguishes steps that occur more than once."""
        times = self._times_of(pod) if self._times_of is not None else None
        delay: Delay = getattr(times or self._times, step)
        return delay.draw(self._seed, pod.metadata.uid, step, count)

    def until_running(self, pod: Pod, now: Instant) -> Duration:
        """From the binding to the containers running; notes the images that are then on the node."""
        on_node = self._images.setdefault(pod.spec.node_name, {})
        init = pod.spec.init_containers or ()
        images = _images_of(pod)
        if any(image not in on_node for image in images):
            pulled = after(now, self.draw(pod, "pull"))
            for image in images:
                on_node.setdefault(image, pulled)
        else:
            pulled = after(now, self.draw(pod, "cached"))
        # An image that is on its way to the node for another pod is waited for.
        there = max([pulled, *(on_node[image] for image in images)])
        starts = sum(self.draw(pod, "start", count) for count in range(len(init) + 1))
        return Duration(there - now + starts)

    def has_images(self, pod: Pod, since: Instant) -> None:
        """Note that the pod's images are on its node."""
        on_node = self._images.setdefault(pod.spec.node_name, {})
        for image in _images_of(pod):
            on_node.setdefault(image, since)

    def forget(self, node: str) -> None:
        """Forget a node that is gone."""
        self._images.pop(node, None)


def _images_of(pod: Pod) -> list[str]:
    """The pod's images, each once."""
    containers = (*(pod.spec.init_containers or ()), *(pod.spec.containers or ()))
    return list(dict.fromkeys(container.image for container in containers))

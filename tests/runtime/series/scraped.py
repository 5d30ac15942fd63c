"""A living cluster whose node loop is observed, and a frozen one that reports what each step found."""

from __future__ import annotations

import pytest
from tests.nodes.frozen import World as Frozen
from tests.nodes.live import World, play
from tests.runtime.series.reading import read

from kubetide.embedded.cloud import GroupSpec
from kubetide.nodes.series import NodesSeries
from kubetide.runtime.series import ListeningRecorder
from kubetide.units.exposition import Registry

SMALL = GroupSpec(name="small", instance_type="m5.large", max_size=10)
NO_GPU = ("", "", "")


class Scraped(World):
    """A world whose node loop is listened to."""

    def __init__(self, clock, *args, **settings):
        super().__init__(clock, *args, **settings)
        self.registry = Registry()
        series = NodesSeries(self.registry, self.controller, clock)
        listening = ListeningRecorder(self.recorder, pytest.fail)
        listening.listen("nodes", series.on_record)
        self.controller._recorder = listening

    def read(self):
        return read(self.registry, "cluster_autoscaler_")


def reported(story, groups=(SMALL,), *, world_of=Scraped, **settings):
    """Play a story in a world that is listened to."""
    return play(story, groups, world_of=world_of, **settings)


class Observed(Frozen):
    """A frozen world whose steps one listener receives; ``listen`` makes it of a registry."""

    def __init__(self, listen, **options):
        super().__init__(**options)
        self.registry = Registry()
        self.listener = listen(self.registry)

    def after_step(self, commands, outcomes):
        self.listener(self.state, commands, outcomes, self.now)

    def read(self):
        return read(self.registry, "cluster_autoscaler_")

"""Pods that wait, put one after another on nodes that are there."""

from __future__ import annotations

from bench.scheduling.measuring import Reporter, cpu_us
from bench.scheduling.objects import HOSTNAME, ZONE, make_pod
from kubetide.objects.pod import Pod
from kubetide.scheduling import Snapshot, place

_PODS = 5_000


def measure_placing(snapshot: Snapshot, report: Reporter) -> None:
    """Places 5,000 pods; the floor is one dict entry a pod. They are taken back untimed, a sixth to a quarter more."""
    floor = cpu_us(lambda: {(str(at), str(at)): at for at in range(_PODS)}, number=3)

    def taken_back() -> None:
        snapshot.revert()
        snapshot.fork()

    for words, pods, target_us in (
        ("of 20 applications", _waiting(20), 50_000),
        ("of 200 applications", _waiting(200), 50_000),
        ("that fit nowhere", _waiting(20, cpu="15"), 50_000),
        ("apart by hostname", _waiting(20, apart=HOSTNAME), None),
        ("spread by hostname", _waiting(20, spread=HOSTNAME), None),
        ("spread by zone", _waiting(20, spread=ZONE), None),
    ):

        def placed(pods: list[Pod] = pods) -> None:
            place(snapshot, pods)

        snapshot.fork()
        measured = cpu_us(placed, repeat=5, number=1, before=taken_back)
        snapshot.revert()
        report.line(f"place pods {words}", measured, target_us=target_us, pods=_PODS, floor_us=floor)


def _waiting(applications: int, *, cpu: str = "250m", spread: str = "", apart: str = "") -> list[Pod]:
    return [
        make_pod(f"waiting-{at}", cpu=cpu, shape=2000 + at % applications, spread=spread, apart=apart)
        for at in range(_PODS)
    ]

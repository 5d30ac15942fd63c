"""What the VPA's updater and admission controller cost, as JSON lines.

``python -m bench vertical_pods``. Times are CPU time of the process, the least of several. ``loop`` is one loop of the
updater over 50,000 pods of 5,000 VPA objects that all stay within their bounds, so that each is looked at and none
is changed; ``reviews`` is reviews answered a second, from bytes to bytes, without HTTPS.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import msgspec

from kubetide.objects.pod import Pod
from kubetide.objects.vpa import VerticalPodAutoscaler
from kubetide.runtime.process import tune_gc
from kubetide.units.time import before, format_rfc3339, hours, parse_rfc3339
from kubetide.vertical.admission.decide import reply
from kubetide.vertical.admission.state import State as AdmissionState
from kubetide.vertical.updater.decide import decide
from kubetide.vertical.updater.state import Delta, LeaseView, State
from kubetide.vertical.workloads import WorkloadView

NOW = parse_rfc3339("2026-03-02T08:00:00Z")
VPAS = 5_000
PODS_OF_ONE = 10
REVIEWS = 5_000
PASSES = 5


def vpa(number: int) -> VerticalPodAutoscaler:
    amounts = {"cpu": "500m", "memory": "500Mi"}
    container = {
        "containerName": "main",
        "target": amounts,
        "lowerBound": {"cpu": "300m", "memory": "300Mi"},
        "upperBound": {"cpu": "800m", "memory": "800Mi"},
    }
    body = {
        "metadata": {"name": f"w{number}", "namespace": "default"},
        "spec": {"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": f"w{number}"}},
        "status": {"recommendation": {"containerRecommendations": [container]}},
    }
    return msgspec.convert(body, VerticalPodAutoscaler)


def pod_body(number: int, of: int) -> dict[str, object]:
    requests = {"cpu": "490m", "memory": "490Mi"}
    owner = {"kind": "ReplicaSet", "name": f"w{of}-1", "controller": True}
    return {
        "metadata": {
            "name": f"w{of}-{number}",
            "namespace": "default",
            "uid": f"{of}-{number}",
            "labels": {"app": f"w{of}"},
            "ownerReferences": [owner],
        },
        "spec": {
            "nodeName": "n1",
            "containers": [{"name": "main", "resources": {"requests": requests, "limits": requests}}],
        },
        "status": {"phase": "Running", "startTime": format_rfc3339(before(NOW, hours(24)))},
    }


def views(of: int) -> list[WorkloadView]:
    deployment = WorkloadView("Deployment", "default", f"w{of}", selector=f"app=w{of}", replicas=PODS_OF_ONE)
    owner = ("Deployment", f"w{of}")
    return [
        deployment,
        WorkloadView("ReplicaSet", "default", f"w{of}-1", owner=owner, replicas=PODS_OF_ONE),
    ]


def cpu_s(work: Callable[[], object]) -> float:
    begin = time.process_time_ns()
    work()
    return (time.process_time_ns() - begin) / 1e9


def measure_loop() -> None:
    state = State.from_full(
        Delta(
            vpas=[vpa(number) for number in range(VPAS)],
            pods=[
                msgspec.convert(pod_body(number, of), Pod)
                for of in range(VPAS)
                for number in range(PODS_OF_ONE)
            ],
            workloads=[view for of in range(VPAS) for view in views(of)],
            lease=LeaseView(renewed=format_rfc3339(NOW)),
        )
    )
    seconds = min(cpu_s(lambda: decide(state, NOW)) for _ in range(PASSES))
    print(json.dumps({"bench": "vertical/updater", "pods": VPAS * PODS_OF_ONE, "loop_s": round(seconds, 3)}))


def measure_reviews() -> None:
    state = AdmissionState()
    for view in views(0):
        state.put_workload(view.key, view)
    state.put_vpa(("default", "w0"), vpa(0))
    request = {
        "uid": "u",
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "operation": "CREATE",
        "namespace": "default",
        "object": pod_body(0, 0),
    }
    body = json.dumps({"request": request}).encode()

    def answer() -> None:
        for _ in range(REVIEWS):
            reply(state, "application/json", body)

    seconds = min(cpu_s(answer) for _ in range(PASSES))
    print(json.dumps({"bench": "vertical/admission", "reviews_per_s": round(REVIEWS / seconds)}))


def main() -> None:
    tune_gc()
    measure_reviews()
    measure_loop()


if __name__ == "__main__":
    main()

"""An ElasticWorkload as an API server sends it."""

from __future__ import annotations


def elastic_sample(meta, samples):
    """Return one with all sections; they hold what the samples of an HPA and a VPA hold."""
    by_kind = {sample["kind"]: sample for sample in samples}
    hpa, vpa = by_kind["HorizontalPodAutoscaler"], by_kind["VerticalPodAutoscaler"]
    return {
        "apiVersion": "kubetide.dev/v1alpha1",
        "kind": "ElasticWorkload",
        "metadata": meta,
        "spec": {
            "targetRef": hpa["spec"]["scaleTargetRef"],
            "horizontal": {name: one for name, one in hpa["spec"].items() if name != "scaleTargetRef"},
            "vertical": {name: one for name, one in vpa["spec"].items() if name != "targetRef"},
            "schedule": {
                "timeZone": "Europe/Berlin",
                "calendars": [{"name": "holidays", "dates": ["12-25", "2026-12-27/2027-01-01"]}],
                "rules": [
                    {
                        "name": "opening",
                        "start": "0 8 * * 1-5",
                        "end": "0 18 * * 1-5",
                        "timeZone": "Europe/Paris",
                        "minReplicas": 6,
                        "maxReplicas": 20,
                        "excludeDates": ["* * 1 5 *"],
                        "excludeCalendars": ["holidays"],
                    },
                    {"name": "night", "at": "0 22 * * *", "replicas": 2},
                ],
            },
            "forecast": {"mode": "calendar", "timeZone": "Europe/Berlin"},
        },
        "status": {
            "observedGeneration": 3,
            "conditions": hpa["status"]["conditions"],
            "horizontal": hpa["status"],
            "vertical": vpa["status"],
            "schedule": {
                "minReplicas": 6,
                "maxReplicas": 20,
                "rules": ["opening"],
                "nextChange": "2026-03-02T17:00:00Z",
                "problems": ["bad: hour (field 2): end of range (25) above maximum (23)"],
            },
        },
    }

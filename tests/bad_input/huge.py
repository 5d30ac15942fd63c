"""Pods and nodes of which one thing is far too large, or far too many."""

from __future__ import annotations

from tests.bad_input.crowds import HOSTNAME, REQUIRED, ZONE, about, apart, spread

MEGABYTE = 1 << 20
LONG = "v" * (2 * MEGABYTE)


def requested(**amounts):
    return [{"name": "a", "resources": {"requests": amounts}}]


def node_terms(*terms):
    return {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}}}


def about_pods(kind, count, topology_key=None):
    terms = [
        {"labelSelector": about(f"x{number}"), "topologyKey": topology_key or f"k{number}"}
        for number in range(count)
    ]
    return {"affinity": {kind: {REQUIRED: terms}}}


MANY = {
    "terms about nodes": lambda count: node_terms(
        *(
            {"matchExpressions": [{"key": "a", "operator": "NotIn", "values": [f"v{number}"]}]}
            for number in range(count)
        )
    ),
    "values of one term": lambda count: node_terms(
        {
            "matchExpressions": [
                {"key": "a", "operator": "NotIn", "values": [f"v{number}" for number in range(count)]}
            ]
        }
    ),
    "nodes by name": lambda count: node_terms(
        *(
            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [f"n{number}"]}]}
            for number in range(count)
        )
    ),
    "anti-affinity": lambda count: about_pods("podAntiAffinity", count, HOSTNAME),
    "anti-affinity by labels that no node has": lambda count: about_pods("podAntiAffinity", count),
    "affinity to pods that are not there": lambda count: about_pods("podAffinity", count, ZONE),
    "affinity by labels that no node has": lambda count: about_pods("podAffinity", count),
    "values of a selector of pods": lambda count: {
        "affinity": apart(
            {
                "matchExpressions": [
                    {"key": "app", "operator": "In", "values": [f"x{number}" for number in range(count)]}
                ]
            }
        )
    },
    "namespaces": lambda count: {
        "affinity": {
            "podAntiAffinity": {
                REQUIRED: [
                    {
                        "labelSelector": about("x"),
                        "namespaces": [f"n{number}" for number in range(count)],
                        "topologyKey": HOSTNAME,
                    }
                ]
            }
        }
    },
    "spread constraints": lambda count: {
        "topologySpreadConstraints": [one for number in range(count) for one in spread(about(f"x{number}"))]
    },
    "spread constraints by labels that no node has": lambda count: {
        "topologySpreadConstraints": [
            one for number in range(count) for one in spread(about(f"x{number}"), f"k{number}")
        ]
    },
    "tolerations": lambda count: {
        "tolerations": [{"key": f"k{number}", "operator": "Exists"} for number in range(count)]
    },
    "containers": lambda count: {
        "containers": [
            {"name": f"c{number}", "resources": {"requests": {"cpu": "1m"}}} for number in range(count)
        ]
    },
    "resources": lambda count: {
        "containers": requested(**{f"example.com/r{number}": "1" for number in range(count)})
    },
    "host ports": lambda count: {
        "containers": [{"name": "a", "ports": [{"hostPort": 1 + number} for number in range(count)]}]
    },
    "claims": lambda count: {
        "volumes": [
            {"name": f"v{number}", "persistentVolumeClaim": {"claimName": f"c{number}"}}
            for number in range(count)
        ]
    },
    "disks": lambda count: {
        "volumes": [
            {"name": f"v{number}", "rbd": {"monitors": ["m"], "pool": "p", "image": f"i{number}"}}
            for number in range(count)
        ]
    },
    "claims for devices": lambda count: {
        "resourceClaims": [
            {"name": f"c{number}", "resourceClaimName": f"nowhere-{number}"} for number in range(count)
        ]
    },
}
"""What there may be any number of in one pod."""

LARGE = {
    "an annotation": {"metadata": {"annotations": {"a": LONG}}},
    "the value of a label": {"metadata": {"labels": {"a": LONG}}},
    "the key of a label": {"metadata": {"labels": {LONG: "a"}}},
    "a variable of the environment": {
        "spec": {"containers": [{"name": "a", "env": [{"name": "a", "value": LONG}]}]}
    },
    "the value of a node selector": {"spec": {"nodeSelector": {"a": LONG}}},
    "the key of a node selector": {"spec": {"nodeSelector": {LONG: "a"}}},
    "the value of a toleration": {"spec": {"tolerations": [{"key": "a", "value": LONG}]}},
    "the operator of a term": {
        "spec": node_terms({"matchExpressions": [{"key": "a", "operator": LONG, "values": ["x"]}]})
    },
    "an amount": {"spec": {"containers": requested(cpu="9" * MEGABYTE)}},
    "the name of a resource": {"spec": {"containers": requested(**{f"example.com/{LONG}": "1"})}},
    "the name of a claim": {
        "spec": {"volumes": [{"name": "a", "persistentVolumeClaim": {"claimName": LONG}}]}
    },
    "the name of a topology": {"spec": {"affinity": apart(about("x"), LONG)}},
    "a selector of pods": {"spec": {"affinity": apart(about(LONG))}},
}
"""Of megabytes, as an adapter in the process may hand it over."""

NODES = {
    "many labels": {"metadata": {"labels": {f"l{number}": "v" for number in range(5_000)}}},
    "a label of megabytes": {"metadata": {"labels": {"a": LONG}}},
    "an annotation of megabytes": {"metadata": {"annotations": {"a": LONG}}},
    "many taints": {
        "spec": {"taints": [{"key": f"k{number}", "effect": "PreferNoSchedule"} for number in range(1_000)]}
    },
    "many resources": {"status": {"allocatable": {f"example.com/r{number}": "1" for number in range(1_000)}}},
    "an amount of megabytes": {"status": {"allocatable": {"example.com/a": "1" * MEGABYTE}}},
    "a resource with a name of megabytes": {"status": {"allocatable": {f"example.com/{LONG}": "many"}}},
}

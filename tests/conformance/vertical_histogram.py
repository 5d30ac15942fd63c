"""Plays recorded operations on bare histograms; each named histogram is a matrix of one row."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from tests.conformance.cases import Case, difference

from kubetide.units.time import Duration, Instant, format_rfc3339, parse_duration, parse_rfc3339
from kubetide.vertical.recommender.usage.buckets import BucketError, Buckets
from kubetide.vertical.recommender.usage.histograms import NEVER, CheckpointError, Histograms

ROW = np.zeros(1, np.int64)


def first_difference(case: Case) -> str | None:
    expect = case["expect"]
    try:
        buckets = _buckets(case["options"])
    except BucketError as exc:
        return difference("expect", expect, {"optionsError": str(exc)})
    player = _Player(buckets, case["halfLife"], parse_rfc3339(case["epoch"]))
    ties = {tuple(tie) for tie in expect.get("ties") or ()}
    for index, (op, recorded) in enumerate(zip(case["ops"], expect["results"], strict=True)):
        required = recorded
        if isinstance(required, dict) and "panic" in required and op["op"] != "bucketStart":
            return None  # upstream gives no answer, and none to what follows
        found = player.play(op)
        if op["op"] == "percentiles" and ties:
            pairs = [
                (a, b)
                for at, (a, b) in enumerate(zip(required, found, strict=True))
                if (index, at) not in ties
            ]
            required, found = [a for a, _ in pairs], [b for _, b in pairs]
        where = _difference(f"results[{index}] ({op['op']})", required, found)
        if where:
            return where
    return None


def _buckets(options: dict[str, Any]) -> Buckets:
    if options["kind"] == "linear":
        return Buckets.linear(most=options["max"], width=options["bucket"], epsilon=options["epsilon"])
    return Buckets.exponential(
        most=options["max"], width=options["bucket"], ratio=options["ratio"], epsilon=options["epsilon"]
    )


class _Player:
    def __init__(self, buckets: Buckets, half_life: str, epoch: Instant) -> None:
        self.buckets, self.epoch = buckets, epoch
        self.half_life = Duration(parse_duration(half_life)) if half_life else None
        self.named: dict[str, Histograms] = {}

    def of(self, name: str) -> Histograms:
        return self.named.setdefault(name, Histograms(self.buckets, self.half_life, 1))

    def play(self, op: dict[str, Any]) -> Any:
        histogram = self.of(op.get("h", "a"))
        match op["op"]:
            case "add" | "subtract":
                change = histogram.add if op["op"] == "add" else histogram.subtract
                for value, weight, second in op["samples"]:
                    at = np.array([self.epoch + int(second * 1e9)])
                    change(ROW, np.array([self.buckets.find(value)]), weight, at)
                return None
            case "percentiles":
                return histogram.values(ROW, op["percentiles"])[:, 0].tolist()
            case "merge":
                return histogram.merge(ROW, self.of(op["other"]), ROW)
            case "save":
                return self.saved(histogram)
            case "load":
                return self.load(histogram, op["checkpoint"])
            case "roundtrip":
                checkpoint = self.saved(histogram)
                return self.load(self.of(op["other"]), checkpoint) or checkpoint
            case "dump":
                return self.dump(histogram)
            case "isEmpty":
                return bool(histogram.is_empty(ROW)[0])
            case "equals":
                return self.equal(histogram, self.of(op["other"]))
            case "numBuckets":
                return self.buckets.count
            case "findBucket":
                return [self.buckets.find(value) for value in op["values"]]
            case "bucketStart":
                try:
                    return [self.buckets.start(bucket) for bucket in op["buckets"]]
                except BucketError as exc:
                    return {"panic": str(exc)}
        raise AssertionError(op["op"])

    def reference(self, histogram: Histograms) -> str | None:
        found = int(histogram.reference[0])
        return None if found == NEVER else format_rfc3339(Instant(found))

    def saved(self, histogram: Histograms) -> dict[str, Any]:
        shares = histogram.shares(ROW)[0]
        weights = {str(bucket): int(shares[bucket]) for bucket in np.flatnonzero(shares)}
        checkpoint: dict[str, Any] = {"referenceTimestamp": self.reference(histogram)}
        if weights:
            checkpoint["bucketWeights"] = weights
        if histogram.total[0]:
            checkpoint["totalWeight"] = float(histogram.total[0])
        return checkpoint

    def load(self, histogram: Histograms, checkpoint: dict[str, Any]) -> Any:
        weights = checkpoint.get("bucketWeights") or {}
        buckets, total = [int(bucket) for bucket in weights], float(checkpoint.get("totalWeight", 0.0))
        time = checkpoint.get("referenceTimestamp")
        try:
            histogram.check(buckets, total)
        except CheckpointError as exc:
            return {"error": str(exc)}
        histogram.load(
            ROW,
            np.array([len(buckets)]),
            np.array(buckets, np.int64),
            np.array(list(weights.values()), np.int64),
            np.array([total]),
            np.array([NEVER if time is None else parse_rfc3339(time)]),
        )
        return None

    def dump(self, histogram: Histograms) -> dict[str, Any]:
        [weights] = histogram.weights
        found = {
            "weights": {str(bucket): float(weights[bucket]) for bucket in np.flatnonzero(weights)},
            "totalWeight": float(histogram.total[0]),
            "minBucket": int(histogram.low[0]),
            "maxBucket": int(histogram.high[0]),
            "isEmpty": bool(histogram.is_empty(ROW)[0]),
        }
        return found | ({"referenceTimestamp": self.reference(histogram)} if self.half_life else {})

    def equal(self, one: Histograms, other: Histograms) -> bool:
        same = one.low[0] == other.low[0] and one.high[0] == other.high[0]
        if self.half_life:
            same = same and one.reference[0] == other.reference[0]
        near = np.abs(one.weights - other.weights) <= self.buckets.epsilon
        return bool(same and near.all())


def _difference(where: str, required: Any, found: Any) -> str | None:
    """Compare as JSON; floats bit for bit where upstream printed them in full, else to 1e-9."""
    if isinstance(required, dict) and "weights" in required:
        required = required | {
            "weights": {bucket: float(weight) for bucket, weight in required["weights"].items()},
            "totalWeight": float(required["totalWeight"]),
        }
        return difference(where, required, found)
    return difference(where, required, _near(required, found))


def _near(required: Any, found: Any) -> Any:
    if isinstance(required, list) and isinstance(found, list) and len(required) == len(found):
        return [_near(a, b) for a, b in zip(required, found, strict=True)]
    if isinstance(required, dict) and isinstance(found, dict):
        return {key: _near(required.get(key), value) for key, value in found.items()}
    if (
        isinstance(required, float | int)
        and isinstance(found, float)
        and math.isclose(required, found, rel_tol=1e-9)
    ):
        return required
    return found

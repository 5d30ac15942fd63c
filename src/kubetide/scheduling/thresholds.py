"""All thresholds that choose between algorithms, each with the benchmark to run when it is changed.

They change how fast an answer is found. Those of scheduling never change the answer; those of the least-cost
expander bound how much work is spent on a better one. Bounds of memory (how many results are cached) stand beside
their caches. Lines of ``bench.scheduling`` are named as the benchmark prints them.
"""

from __future__ import annotations

# ── Snapshot ──

FIRST_FIT_ROWS_ONE_BY_ONE = 32
"""``Snapshot.first_fit`` looks at so many rows one by one before it evaluates all of them as vectors.

Benchmark: ``bench.scheduling --only placing``, "place pods of 20 applications" and "place pods that fit nowhere".
"""

COUNT_COLUMNS_BEFORE_FORGETTING = 2048
"""With more columns of counts than this, all are dropped and those asked for are made again.

Each rollout of a spread workload may ask for a new column, and each pod that comes or goes is counted in all that
match it. Benchmark: ``bench.scheduling --only building``, "event, bytes to snapshot".
"""

PODS_CHARGED_ONE_BY_ONE = 8
"""Of many pods that are put on nodes together, up to so many that take the same are subtracted one by one, more as vectors.

Benchmark: ``bench.ticks``: the time until its first line, most of which is the state of pods of many applications.
"""

# ── Columns ──

PLACES_IN_DICT = 16
"""Counts with up to so many places that are not zero are a dict, with more a vector.

Benchmark: ``bench.scheduling --only placing,verdicts``, "place pods apart by hostname" and "kept off by 100 terms";
``bench.memory`` for the bytes.
"""

CLASSES_ADDED_ONE_BY_ONE = 64
"""Up to so many classes of pods are added up one by one when a count is made, more all together.

Benchmark: ``bench.scheduling --only verdicts``, "class against all nodes, for the first time".
"""

LABEL_VALUES_INDEXED = 16
"""Selectors that allow up to so many values of a label are indexed by each value, others by another label.

Benchmark: ``bench.scheduling --only placing``, "place pods of 200 applications".
"""

DOMAINS_EXTENDED_BY_COPIES = 64
"""Up to so many maps of rows to domains are extended by new copies of a template; more are made again when asked for.

Benchmark: ``bench.scheduling --only estimates``, "10,000 spread by zone" and "10,000 spread by hostname".
"""

POD_INDEX_CHANGES = 4096
"""After so many changes, and a fourth of the pods, the index of pods by class is made again when asked for.

Benchmark: ``bench.scheduling --only building``, "event, bytes to snapshot".
"""

# ── Estimator ──

PODS_A_CLASS_ONE_BY_ONE = 16
"""With up to so many pods of a class on average, pods are packed one by one; with more, copies are counted in one go.

Benchmark: ``bench.scheduling --only estimates``: with 256 in its place, "50,000 of 200 classes" (250 pods a class)
takes 3.9 times as long; "1,000 of 200 classes" (5 pods a class) is the other side.
"""

NEW_NODES_ONE_BY_ONE = 16
"""The estimate pod by pod looks at so many new nodes one by one before it compares all of them as vectors.

Benchmark: ``bench.scheduling --only estimates``, "1,000 of 200 classes, half of them with inter-pod rules": a tenth more with 0.
"""

# ── Least-cost expander ──

CLASSES_BOUGHT_BOTH_WAYS = 16
"""Up to so many classes with inter-pod rules are bought for by the estimator too, not by the plan alone.

The cheaper of both is taken; the estimator takes 0.15 ms a class and group. Benchmark: ``bench.ticks``, and ``bench.mix``
for the price.
"""

DIVERSE_CLASSES, DIVERSE_PODS_A_CLASS = 32, 8
"""With more classes than this and fewer pods of each on average, no two nodes are alike, and column generation is left out.

Its integer programs take minutes (70 classes of one pod each, 400 groups: more than four) and find no more than a
plan does. Benchmark: ``bench.packing`` and ``bench.mix``.
"""

PROGRAM_BY_CLASS = 500
"""Up to so many pairs of class and offer the lower bound is that of the relaxation by class, above it that by resource.

The one by resource is lower, and faster. Benchmark: ``bench.packing``.
"""

PLAIN_SIZES_BY_COLUMN_GENERATION = 12
"""Up to so many sizes of pods without inter-pod rules, nodes that only they are on are left to column generation.

For few sizes it is quick and finds more than the plan of a diverse fleet. Benchmark: ``bench.mix``.
"""

OFFERS_ESTIMATED = 8
"""Offers that the estimator packs at a time; with hundreds of groups that is most of a tick.

Benchmark: ``bench.ticks``. Over 400 groups, 4, 8 and 16 come to the same price, 2 to one that is 1 to 5 % higher.
"""

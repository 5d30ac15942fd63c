"""What filters may ask about the cluster beside nodes and pods: namespaces and feature gates."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


class ClusterFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Facts that change seldom; a new value is a new version of everything that was judged.

    Attributes:
        namespaces: Labels of each Namespace object, by name.
        taint_comparison: Gate TaintTolerationComparisonOperators (alpha, off in v1.36): tolerations
            with Gt and Lt.
    """

    namespaces: Mapping[str, Mapping[str, str]] = {}
    taint_comparison: bool = False

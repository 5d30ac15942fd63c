"""Policy tests: a scenario, and expectations about its run."""

from __future__ import annotations

from kubetide.experiments.policies.evaluate import Finding, evaluate
from kubetide.experiments.policies.expectations import Expectation, ExpectationError, read_expectation
from kubetide.experiments.policies.junit import Case, junit_xml
from kubetide.experiments.policies.spec import Policy, PolicyError, load_policy, policy_files

__all__ = [
    "Case",
    "Expectation",
    "ExpectationError",
    "Finding",
    "Policy",
    "PolicyError",
    "evaluate",
    "junit_xml",
    "load_policy",
    "policy_files",
    "read_expectation",
]

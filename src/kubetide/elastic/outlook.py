"""The answer of ``kubetide explain elasticworkload``."""

from __future__ import annotations

from kubetide.elastic.sections import effective_bounds
from kubetide.elastic.state import State
from kubetide.explain.algorithm import StepCore
from kubetide.objects.elastic import ElasticWorkload
from kubetide.units.time import Instant


def names(core: StepCore[State]) -> list[str]:
    """Return the names of all ElasticWorkloads."""
    return ["/".join(key) for key in sorted(core.state.scene.workloads)]


def lines(core: StepCore[State], subject: str, now: Instant, view: str) -> list[str]:
    """Return the request of each section, and the command that shows more. Raises KeyError for an unknown object."""
    del now, view
    namespace, _, name = subject.partition("/")
    scene = core.state.scene
    found, verdict = scene.workloads[namespace, name], scene.verdict((namespace, name))
    target = f"{found.spec.target_ref.kind} {found.spec.target_ref.name}"
    if verdict.reason:
        return [f"it scales {target}, but is not followed: {verdict.reason}: {verdict.message}"]
    return [f"it scales {target}", *_sections(found, f"{name} -n {namespace}")]


def _sections(found: ElasticWorkload, named: str) -> list[str]:
    spec, said = found.spec, []
    bounds = found.status.schedule if spec.schedule is not None else None
    if spec.horizontal is not None:
        low, high = effective_bounds(spec.horizontal, bounds)
        said.append(
            f"horizontal: {1 if low is None else low} to {high} replicas; kubetide explain hpa {named}"
        )
    if spec.vertical is not None:
        policy = spec.vertical.update_policy
        mode = policy.update_mode if policy is not None and policy.update_mode else "Recreate"
        said.append(f"vertical: update mode {mode}; kubetide explain vpa {named}")
    if spec.schedule is not None:
        rules = ", ".join((bounds.rules if bounds is not None else None) or ()) or "no rule"
        said.append(f"schedule: {rules} holds; kubetide explain schedule {named}")
        said += [f"warning: {text}" for text in (bounds.problems if bounds is not None else None) or ()]
    if spec.forecast is not None:
        said.append(f"forecast: {spec.forecast.mode or 'calendar'}; kubetide explain hpa {named}")
    return said

"""What every implementation of the MetricSource port must do: a battery without a test framework.

Each case is an async function that takes a ``SourceUnderTest`` and raises AssertionError where the
source falls short. The source must not get new samples while a case runs.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import numpy as np

from kubetide.objects.pod import Pod
from kubetide.ports.errors import MetricsError
from kubetide.ports.metrics import MetricSource, PodSamples
from kubetide.units.selectors import Selector


@dataclass(frozen=True)
class SourceUnderTest:
    """A source and what the cases may rely on.

    Attributes:
        source: The source.
        pods: The pods it has samples of, each with at least one container; of two namespaces at
            least, and not all with equal labels.
    """

    source: MetricSource
    pods: Sequence[Pod]


def _keys(samples: PodSamples) -> list[tuple[str, str]]:
    return list(zip(samples.namespaces, samples.names, strict=True))


def _expected(pods: Sequence[Pod], namespace: str = "", labels: str = "") -> list[tuple[str, str]]:
    selector = Selector.parse(labels)
    return sorted(
        (pod.metadata.namespace, pod.metadata.name)
        for pod in pods
        if (not namespace or pod.metadata.namespace == namespace) and selector.matches(pod.metadata.labels)
    )


def _containers(samples: PodSamples, index: int) -> list[str]:
    return list(samples.containers[samples.first[index] : samples.first[index + 1]])


async def all_pods_are_there(test: SourceUnderTest) -> None:
    """Without namespace and selector all pods with samples come."""
    assert sorted(_keys(await test.source.pod_samples())) == _expected(test.pods), "other pods than expected"


async def columns_have_their_shapes(test: SourceUnderTest) -> None:
    """The columns of pods and containers have equal lengths and integer types."""
    samples = await test.source.pod_samples()
    pods, containers = len(samples.names), len(samples.containers)
    assert len(samples.namespaces) == pods, "namespaces and names differ in length"
    for column in (samples.timestamp_ns, samples.window_ns):
        assert column.shape == (pods,), f"a pod column of shape {column.shape}, not ({pods},)"
        assert column.dtype == np.int64, f"a pod column of {column.dtype}"
    assert samples.first.shape == (pods + 1,), f"first of shape {samples.first.shape}, not ({pods + 1},)"
    assert samples.first[0] == 0, "first does not begin at 0"
    assert samples.first[-1] == containers, "first does not end at the number of containers"
    assert (np.diff(samples.first) >= 0).all(), "first falls"
    for name, usage in samples.usage.items():
        assert usage.milli.shape == usage.present.shape == (containers,), f"{name}: wrong shape"
        assert usage.milli.dtype == np.int64, f"{name}: {usage.milli.dtype}, not int64"
        assert usage.present.dtype == np.bool_, f"{name}: present is {usage.present.dtype}"
        assert (usage.milli >= 0).all(), f"{name}: negative usage"


async def cpu_and_memory_are_there(test: SourceUnderTest) -> None:
    """Both resources of the resource metrics API are reported."""
    samples = await test.source.pod_samples()
    assert {"cpu", "memory"} <= set(samples.usage), f"only {sorted(samples.usage)}"


async def containers_are_those_of_the_pod(test: SourceUnderTest) -> None:
    """The containers of each sample are containers of the pod, each once."""
    samples = await test.source.pod_samples()
    known = {
        (pod.metadata.namespace, pod.metadata.name): [c.name for c in pod.spec.containers or ()]
        for pod in test.pods
    }
    for index, key in enumerate(_keys(samples)):
        names = _containers(samples, index)
        assert names, f"{key} has no container"
        assert len(set(names)) == len(names), f"{key}: a container twice in {names}"
        assert set(names) <= set(known[key]), f"{key}: {names} are not all among {known[key]}"


async def a_namespace_limits_the_answer(test: SourceUnderTest) -> None:
    """With a namespace only its pods come."""
    for namespace in sorted({pod.metadata.namespace for pod in test.pods}):
        samples = await test.source.pod_samples(namespace)
        assert sorted(_keys(samples)) == _expected(test.pods, namespace), (
            f"other pods than those of {namespace}"
        )


async def a_selector_limits_the_answer(test: SourceUnderTest) -> None:
    """With a selector only pods with such labels come."""
    for pod in test.pods:
        for key, value in sorted((pod.metadata.labels or {}).items()):
            for selector in (f"{key}={value}", f"{key}!={value}", f"{key} in ({value})", key, f"!{key}"):
                samples = await test.source.pod_samples(labels=selector)
                assert sorted(_keys(samples)) == _expected(test.pods, labels=selector), (
                    f"wrong pods for {selector}"
                )


async def parts_hold_the_numbers_of_the_whole(test: SourceUnderTest) -> None:
    """A pod's sample is the same however it was asked for."""
    whole = await test.source.pod_samples()
    at = {key: index for index, key in enumerate(_keys(whole))}
    for namespace in sorted({pod.metadata.namespace for pod in test.pods}):
        part = await test.source.pod_samples(namespace)
        for index, key in enumerate(_keys(part)):
            other = at[key]
            assert _containers(part, index) == _containers(whole, other), f"{key}: other containers"
            assert part.timestamp_ns[index] == whole.timestamp_ns[other], f"{key}: another timestamp"
            for name in whole.usage:
                a = part.usage[name].milli[part.first[index] : part.first[index + 1]]
                b = whole.usage[name].milli[whole.first[other] : whole.first[other + 1]]
                assert (a == b).all(), f"{key}: other {name}"


async def what_nothing_matches_is_empty(test: SourceUnderTest) -> None:
    """An unknown namespace or a selector that matches nothing gives no samples and no error."""
    for samples in (
        await test.source.pod_samples("no-such-namespace"),
        await test.source.pod_samples(labels="no-such-label=x"),
    ):
        assert len(samples.names) == len(samples.namespaces) == len(samples.containers) == 0, (
            "samples of nothing"
        )
        assert samples.first.tolist() == [0], f"first is {samples.first.tolist()}"


async def names_keep_their_identity(test: SourceUnderTest) -> None:
    """While the pods are the same, so are the tuples of their names."""
    for namespace in ("", test.pods[0].metadata.namespace):
        one, two = await test.source.pod_samples(namespace), await test.source.pod_samples(namespace)
        assert one.names is two.names, "the same pods in a new tuple of names"
        assert one.namespaces is two.namespaces, "the same pods in a new tuple of namespaces"


async def a_bad_selector_is_a_metrics_error(test: SourceUnderTest) -> None:
    """A selector that cannot be read raises MetricsError."""
    refusal: MetricsError | None = None
    try:
        await test.source.pod_samples(labels="a in (")
    except MetricsError as error:
        refusal = error
    assert refusal is not None, "a bad selector was accepted"
    assert str(refusal), "a MetricsError says what is wrong"


CASES: tuple[Callable[[SourceUnderTest], Awaitable[None]], ...] = (
    all_pods_are_there,
    columns_have_their_shapes,
    cpu_and_memory_are_there,
    containers_are_those_of_the_pod,
    a_namespace_limits_the_answer,
    a_selector_limits_the_answer,
    parts_hold_the_numbers_of_the_whole,
    what_nothing_matches_is_empty,
    names_keep_their_identity,
    a_bad_selector_is_a_metrics_error,
)

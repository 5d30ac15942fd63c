"""What every implementation of the three metric ports must do: a battery without a test framework.

Each case is an async function that takes a source under test and raises AssertionError where the
source falls short: ``CASES`` a ``SourceUnderTest``, ``CUSTOM_CASES`` a ``CustomUnderTest``,
``EXTERNAL_CASES`` an ``ExternalUnderTest``. The source must not get new samples while a case runs.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kubetide.objects.pod import Pod
from kubetide.ports.errors import MetricsError
from kubetide.ports.metrics import (
    CustomMetricSource,
    ExternalMetricSource,
    MetricSource,
    ObjectValue,
    PodSamples,
)
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


@dataclass(frozen=True)
class CustomUnderTest:
    """A source of custom metrics and what the cases may rely on.

    Attributes:
        source: The source.
        metric: A metric that pods have.
        pods: The pods of one namespace that have it: two at least, not all with equal labels.
        object_metric: A metric that one object of that namespace has.
        api_version, kind, name: Which object.
    """

    source: CustomMetricSource
    metric: str
    pods: Sequence[Pod]
    object_metric: str
    api_version: str
    kind: str
    name: str

    @property
    def namespace(self) -> str:
        return self.pods[0].metadata.namespace

    async def object_value(self, metric: str = "", name: str = "", selector: str = "") -> ObjectValue:
        """Ask for the object's metric, or for another one, or of another object of its kind."""
        return await self.source.object_value(
            metric or self.object_metric,
            namespace=self.namespace,
            api_version=self.api_version,
            kind=self.kind,
            name=name or self.name,
            selector=selector,
        )


@dataclass(frozen=True)
class ExternalUnderTest:
    """A source of external metrics and what the cases may rely on.

    Attributes:
        source: The source.
        metric: A metric of several series, not all with equal labels.
        namespace: Where it can be asked for.
        series: The labels of each series.
    """

    source: ExternalMetricSource
    metric: str
    namespace: str
    series: Sequence[Mapping[str, str]]


async def _refused(asking: Awaitable[object], otherwise: str) -> str:
    """Return the text of the MetricsError that the question must end with."""
    text: str | None = None
    try:
        await asking
    except MetricsError as error:
        text = str(error)
    assert text is not None, otherwise
    assert text, "a MetricsError says what is wrong"
    return text


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
    await _refused(test.source.pod_samples(labels="a in ("), "a bad selector was accepted")


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


async def every_pod_has_a_value(test: CustomUnderTest) -> None:
    """Each pod comes once, with integer columns of one length."""
    found = await test.source.pod_values(test.metric, namespace=test.namespace)
    assert sorted(found.names) == sorted(pod.metadata.name for pod in test.pods), "other pods than expected"
    for column in (found.milli, found.timestamp_ns):
        assert column.shape == (len(found.names),), f"a column of shape {column.shape}"
        assert column.dtype == np.int64, f"a column of {column.dtype}"


async def a_pod_selector_limits_the_values(test: CustomUnderTest) -> None:
    """With a selector come pods with such labels, with the values that they have without it."""
    whole = await test.source.pod_values(test.metric, namespace=test.namespace)
    values = dict(zip(whole.names, whole.milli.tolist(), strict=True))
    for pod in test.pods:
        for key, value in sorted((pod.metadata.labels or {}).items()):
            for selector in (f"{key}={value}", f"{key} in ({value})", key):
                found = await test.source.pod_values(test.metric, namespace=test.namespace, pods=selector)
                expected = [name for _, name in _expected(test.pods, labels=selector)]
                assert sorted(found.names) == expected, f"wrong pods for {selector}"
                assert found.milli.tolist() == [values[name] for name in found.names], "other values"


async def pods_without_a_value_are_an_error(test: CustomUnderTest) -> None:
    """Pods that are not there, or a metric without such labels, raise MetricsError that says so."""
    for asking in (
        test.source.pod_values(test.metric, namespace=test.namespace, pods="no-such-label=x"),
        test.source.pod_values(test.metric, namespace="no-such-namespace"),
        test.source.pod_values(test.metric, namespace=test.namespace, selector="no-such-label=x"),
    ):
        text = await _refused(asking, "values of nothing")
        assert "custom metrics API" in text, f"{text!r} does not say which API"


async def an_unknown_custom_metric_is_an_error(test: CustomUnderTest) -> None:
    """A metric that nobody has raises MetricsError, of pods as of an object."""
    for asking in (
        test.source.pod_values("no-such-metric", namespace=test.namespace),
        test.object_value("no-such-metric"),
    ):
        text = await _refused(asking, "a value of an unknown metric")
        assert "custom metrics API" in text, f"{text!r} does not say which API"


async def an_object_has_one_value(test: CustomUnderTest) -> None:
    """One object gives one whole number of milli-units and the time of it, the same when asked again."""
    found = await test.object_value()
    assert isinstance(found.milli, int), f"a value of {type(found.milli)}"
    assert isinstance(found.timestamp_ns, int), f"a time of {type(found.timestamp_ns)}"
    assert found == await test.object_value(), "another value when asked again"


async def an_object_without_the_metric_is_an_error(test: CustomUnderTest) -> None:
    """An object that is not there, or a metric without such labels, raises MetricsError."""
    await _refused(test.object_value(name="no-such-object"), "a value of an unknown object")
    await _refused(
        test.object_value(selector="no-such-label=x"), "a value for a selector that nothing matches"
    )


async def a_bad_selector_of_custom_metrics_is_an_error(test: CustomUnderTest) -> None:
    """A selector that cannot be read, of pods or of the metric, raises MetricsError."""
    for asking in (
        test.source.pod_values(test.metric, namespace=test.namespace, pods="a in ("),
        test.source.pod_values(test.metric, namespace=test.namespace, selector="a in ("),
        test.object_value(selector="a in ("),
    ):
        await _refused(asking, "a bad selector was accepted")


async def every_series_comes(test: ExternalUnderTest) -> None:
    """Without a selector come the values of all series, as whole numbers."""
    found = await test.source.external_values(test.metric, namespace=test.namespace)
    assert len(found.milli) == len(test.series), f"{len(found.milli)} series, not {len(test.series)}"
    assert all(isinstance(value, int) for value in found.milli), "a value that is no int"
    assert isinstance(found.timestamp_ns, int), f"a time of {type(found.timestamp_ns)}"


async def a_selector_chooses_series(test: ExternalUnderTest) -> None:
    """With a selector come the series with such labels, with the values that they have without it."""
    whole = list((await test.source.external_values(test.metric, namespace=test.namespace)).milli)
    for labels in test.series:
        for key, value in sorted(labels.items()):
            for text in (f"{key}={value}", f"{key} in ({value})", key):
                found = await test.source.external_values(
                    test.metric, namespace=test.namespace, selector=text
                )
                count = sum(Selector.parse(text).matches(other) for other in test.series)
                assert len(found.milli) == count, f"{len(found.milli)} series for {text}, not {count}"
                assert all(found.milli.count(value) <= whole.count(value) for value in found.milli), (
                    f"other values for {text}"
                )


async def no_series_is_an_error(test: ExternalUnderTest) -> None:
    """An unknown metric, or a selector that nothing matches, raises MetricsError that says so."""
    for metric, selector in ((test.metric, "no-such-label=x"), ("no-such-metric", "")):
        asking = test.source.external_values(metric, namespace=test.namespace, selector=selector)
        text = await _refused(asking, "values of nothing")
        assert "external metrics API" in text, f"{text!r} does not say which API"


async def a_bad_selector_of_series_is_an_error(test: ExternalUnderTest) -> None:
    """A selector that cannot be read raises MetricsError."""
    asking = test.source.external_values(test.metric, namespace=test.namespace, selector="a in (")
    await _refused(asking, "a bad selector was accepted")


CUSTOM_CASES: tuple[Callable[[CustomUnderTest], Awaitable[None]], ...] = (
    every_pod_has_a_value,
    a_pod_selector_limits_the_values,
    pods_without_a_value_are_an_error,
    an_unknown_custom_metric_is_an_error,
    an_object_has_one_value,
    an_object_without_the_metric_is_an_error,
    a_bad_selector_of_custom_metrics_is_an_error,
)

EXTERNAL_CASES: tuple[Callable[[ExternalUnderTest], Awaitable[None]], ...] = (
    every_series_comes,
    a_selector_chooses_series,
    no_series_is_an_error,
    a_bad_selector_of_series_is_an_error,
)

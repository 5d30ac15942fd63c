"""What a template's ``kube-env`` metadata says of its nodes.

``kube-env`` is a YAML map of texts. Its ``AUTOSCALER_ENV_VARS`` is a list ``name=value;name=value``
for the autoscaler alone; older keys (``NODE_LABELS``, ``NODE_TAINTS``, ``KUBELET_TEST_ARGS``) stand
in where a variable is absent. A variable behind an item without ``=`` cannot be read.

Source: cluster-autoscaler cloudprovider/gce, building a node from a template.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from kubetide.clouds.common.template import readable_quantities
from kubetide.objects.node import Taint
from kubetide.objects.yaml_reading import YamlError, read_documents
from kubetide.ports.errors import CloudError
from kubetide.units.numbers import NumberError, parse_float
from kubetide.units.quantity import Quantity, QuantityError, quantity_error

_MIB = 1 << 20
_VARIABLES = "AUTOSCALER_ENV_VARS"
_EXTENDED_LABEL = "clusterautoscaler-nodetemplate-resources."
_KUBE_RESERVED = re.compile(r"--kube-reserved=([^ ]+)")
_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_DISTRIBUTIONS = {
    "cos": "cos",
    "cos_containerd": "cos",
    "ubuntu": "ubuntu",
    "ubuntu_containerd": "ubuntu",
    "windows_ltsc": "windows_ltsc",
    "windows_sac": "windows_sac",
}
_RESERVABLE = ("cpu", "memory", "ephemeral-storage")


class Eviction(NamedTuple):
    """What the kubelet keeps free: bytes of memory, part of the ephemeral storage."""

    memory_bytes: int = 100 * _MIB
    storage_ratio: float = 0.1


def parse_kube_env(text: str) -> dict[str, str]:
    """Return the map that a kube-env is. Numbers and booleans become texts, a later key wins. Raises CloudError."""
    try:
        documents = list(read_documents(text, last_key_wins=True))
    except YamlError as error:
        raise CloudError(f"kube-env is not YAML: {error}") from error
    value = documents[0].value if documents else None
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise CloudError("kube-env is not a map")
    for key, one in value.items():
        if isinstance(one, dict | list):
            raise CloudError(f"kube-env: {key} is not a text")
    return {key: _text(one) for key, one in value.items()}


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def variable(env: Mapping[str, str], name: str) -> str | None:
    """Return a variable of ``AUTOSCALER_ENV_VARS``, None where it is absent. Raises CloudError."""
    text = env.get(_VARIABLES, "")
    if not text.strip(" "):
        return None
    for item in text.split(";"):
        key, equals, value = item.strip(" ").partition("=")
        if not equals:
            raise CloudError(f"malformed autoscaler var: {item.strip(' ')}")
        if key.strip(" ") == name:
            return value.strip(" \"'")
    return None


def _variable_or_none(env: Mapping[str, str], name: str) -> str | None:
    try:
        return variable(env, name)
    except CloudError:
        return None


def key_values(text: str) -> dict[str, str]:
    """Return ``k=v,k=v`` as a map; a later key wins. Raises CloudError that quotes the bad item."""
    found: dict[str, str] = {}
    for item in text.split(",") if text else ():
        key, equals, value = item.partition("=")
        if not equals:
            raise CloudError(f"error while parsing key-value list, val: {item}")
        found[key] = value
    return found


def labels(env: Mapping[str, str]) -> dict[str, str]:
    """Return the node labels. Raises CloudError."""
    text = _variable_or_none(env, "node_labels")
    return key_values(env.get("NODE_LABELS", "") if text is None else text)


def taints(env: Mapping[str, str]) -> tuple[Taint, ...]:
    """Return the node taints, ``key=value:Effect``; the effect is not checked. Raises CloudError."""
    text = _variable_or_none(env, "node_taints")
    found: list[Taint] = []
    for key, value in key_values(env.get("NODE_TAINTS", "") if text is None else text).items():
        content, colon, effect = value.partition(":")
        if not colon:
            raise CloudError(f"error while parsing node taint value and effect: {value}")
        found.append(Taint(key=key, value=content, effect=effect))
    return tuple(found)


def kube_reserved_text(env: Mapping[str, str]) -> str:
    """Return what is reserved for Kubernetes, as written. Raises CloudError where nothing says it."""
    text = _variable_or_none(env, "kube_reserved")
    if text is not None:
        return text
    arguments = env.get("KUBELET_TEST_ARGS", "")
    found = _KUBE_RESERVED.search(arguments)
    if found is None:
        raise CloudError(f'kube-reserved not in kubelet args in kube-env: "{arguments}"')
    return found[1]


def kube_reserved(text: str) -> dict[str, Quantity]:
    """Return the reserved quantities; unknown resources, bad and negative values are left out.

    Raises CloudError.
    """
    try:
        items = key_values(text)
    except CloudError as error:
        raise CloudError(f'failed to extract kube-reserved from kube-env: "{error}"') from error
    return {name: size for name, size in _quantities(items).items() if name in _RESERVABLE}


def _quantities(items: Mapping[str, str]) -> dict[str, Quantity]:
    return {name: size for name, size in readable_quantities(items.items()).items() if size.sign() >= 0}


def eviction(env: Mapping[str, str]) -> Eviction:
    """Return the hard eviction thresholds; what cannot be read is the default.

    Memory must be a whole number of bytes as upstream's integers hold it: ``1.5Gi`` is not, ``1.5G`` is.
    """
    try:
        items = key_values(variable(env, "evictionHard") or "")
    except CloudError:
        return Eviction()
    return Eviction(
        _whole_bytes(items.get("memory.available", ""), Eviction().memory_bytes),
        _ratio(items.get("nodefs.available", ""), Eviction().storage_ratio),
    )


def _whole_bytes(text: str, default: int) -> int:
    try:
        size = Quantity.parse(text)
    except QuantityError:
        return default
    return default if size.wide or size.exponent < 0 else size.value()


def _ratio(text: str, default: float) -> float:
    if not text.endswith("%"):
        return default
    try:
        value = parse_float(text.removesuffix("%"))
    except NumberError:
        return default
    return value / 100 if 0 <= value <= 100 else default


def operating_system(env: Mapping[str, str]) -> str:
    """Return ``linux`` (the default) or ``windows``, empty where it is neither or cannot be read."""
    try:
        found = variable(env, "os")
    except CloudError:
        return ""
    if found is None:
        return "linux"
    return found if found in {"linux", "windows"} else ""


def distribution(env: Mapping[str, str]) -> str:
    """Return the system's distribution, ``cos`` by default, empty where it is unknown or cannot be read."""
    try:
        found = variable(env, "os_distribution")
    except CloudError:
        return ""
    return "cos" if found is None else _DISTRIBUTIONS.get(found, "")


def architecture(env: Mapping[str, str]) -> str:
    """Return ``amd64`` or ``arm64``. Raises CloudError where neither is said; the default is amd64."""
    try:
        found = variable(env, "arch")
    except CloudError as error:
        raise CloudError(f"error while obtaining arch from {_VARIABLES}: {error}") from error
    if found is None:
        raise CloudError(f"no arch defined in {_VARIABLES}")
    if found not in {"amd64", "arm64"}:
        raise CloudError(f'unknown arch "{found}" defined in {_VARIABLES}')
    return found


def extended_resources(env: Mapping[str, str]) -> dict[str, Quantity]:
    """Return further resources, of the variable and of labels with the prefix. Raises CloudError."""
    items = key_values(variable(env, "extended_resources") or "")
    # Labels of the older key do not count here.
    for key, value in key_values(variable(env, "node_labels") or "").items():
        if key.startswith(_EXTENDED_LABEL):
            items[key.removeprefix(_EXTENDED_LABEL)] = value
    return _quantities(items)


def local_ssds_for_pods(env: Mapping[str, str]) -> int:
    """Return how many local SSDs are the node's ephemeral storage; 0 where that is not said."""
    text = _variable_or_none(env, "ephemeral_storage_local_ssd_count") or ""
    return int(text) if _INTEGER.fullmatch(text) else 0


def is_boot_disk_for_pods(env: Mapping[str, str]) -> bool:
    """Return whether the boot disk is the node's ephemeral storage, as it is by default."""
    return _variable_or_none(env, "BLOCK_EPH_STORAGE_BOOT_DISK") != "true"


def autoscaling_options(env: Mapping[str, str]) -> dict[str, str]:
    """Return the group's options as texts by name. Raises CloudError."""
    return key_values(variable(env, "autoscaling_options") or "")


def problems(env: Mapping[str, str]) -> tuple[str, ...]:
    """Return one sentence for each part of ``AUTOSCALER_ENV_VARS`` that is passed over; upstream only logs these."""
    found: list[str] = []
    text = env.get(_VARIABLES, "").strip(" ")
    for item in (one.strip(" ") for one in text.split(";") if text):
        if "=" not in item:
            found.append(f"{item!r} is not name=value; what stands behind it is not read")
            break
    for name in ("kube_reserved", "extended_resources"):
        found += [f"{name}: {problem}" for problem in _unreadable(_variable_or_none(env, name) or "")]
    for name, known, instead in (
        ("os_distribution", _DISTRIBUTIONS, "cos"),
        ("arch", ("amd64", "arm64"), "amd64"),
    ):
        value = _variable_or_none(env, name)
        if value is not None and value not in known:
            found.append(f"{name} {value!r} is none of {', '.join(known)}; {instead} is assumed")
    return tuple(f"kube-env {_VARIABLES}: {one}" for one in found)


def _unreadable(text: str) -> Iterator[str]:
    """Yield why quantities of a list are ignored."""
    try:
        items = key_values(text)
    except CloudError as error:
        yield f"{error}; all of it is ignored"
        return
    for name, value in items.items():
        refusal = quantity_error(value)
        if refusal is not None or Quantity.parse(value).sign() < 0:
            yield f"{name}: {refusal or f'{value} is negative'}; ignored"

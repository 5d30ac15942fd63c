"""``price``: the group whose new nodes cost least for what they carry, and are of a good size for the cluster."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from kubetide.nodes.expander.base import Context, Option
from kubetide.nodes.scale_down.unneeded.utilization import has_gpu
from kubetide.objects.node import Node
from kubetide.ports.cloud import NVIDIA_GPU, PodPrices
from kubetide.scheduling import classify
from kubetide.units.quantity import milli

_GIB = 1 << 30
_PREFERRED_CORES = ((2, 1), (6, 2), (20, 4), (60, 8), (200, 16))
"""Up to so many nodes in the cluster, nodes of so many cores are preferred; of 32 beyond."""
_LARGEST_PREFERRED = 32
_GPU_UNFITNESS = 1000.0
PRICE = "price"
_NOT_MADE_YET = 2.0
_STABILIZING = (500, 500 << 20)
"""Milli-cores and bytes of the pod whose price damps the ratio for small scale-ups."""


def price(options: Sequence[Option], context: Context) -> list[Option]:
    """Return the options with the lowest score; groups without a price are left out, which may be all.

    Source: Cluster Autoscaler's price-based expander: the price of the nodes over that of their pods, times how
    unlike the nodes are to the preferred size, which counts less the more nodes there are.
    """
    best: list[Option] = []
    least = 0.0
    for option in options:
        if option.group.price_per_hour is None:
            continue
        score = _score(option, option.group.price_per_hour, context)
        if best and score > least:
            continue
        if best and score == least:
            best.append(option)
        else:
            best, least = [option], score
    return best


def _score(option: Option, node_price: float, context: Context) -> float:
    stabilizing = _price_of(*_STABILIZING, context.pod_prices)
    pods = 0.0
    for pod in option.pods:
        pods += pod_price(classify(pod).requests, context.pod_prices)
    ratio = (node_price * float(option.nodes) + stabilizing) / (pods + stabilizing)
    node = option.template.node
    if has_gpu(node, context.gpu_label):
        # Pods that need no GPU had better go elsewhere, however cheap it is.
        unfitness = _GPU_UNFITNESS
    else:
        shrinking = 1.0 - math.tanh((option.nodes - 1) / 15.0)
        unfitness = (_unfitness(node, context.nodes) - 1.0) * shrinking + 1.0
    score = unfitness * ratio
    return score if option.group.exists else score * _NOT_MADE_YET


def _unfitness(node: Node, nodes: int) -> float:
    """Return how many times larger or smaller the node is than the preferred one, 1 or more."""
    cores = next((cores for most, cores in _PREFERRED_CORES if nodes <= most), _LARGEST_PREFERRED)
    preferred = float(cores * 1000)
    found = float(milli((node.status.capacity or {}).get("cpu", 0)))
    return max(preferred / found, found / preferred) if found else math.inf


def pod_price(requests: Mapping[str, int], prices: PodPrices) -> float:
    """Return the hourly price of a pod that requests these milli-cores, bytes and GPUs."""
    price = _price_of(requests.get("cpu", 0), requests.get("memory", 0), prices)
    price += requests.get("ephemeral-storage", 0) / _GIB * prices.storage_gib_hour
    return price + requests.get(NVIDIA_GPU, 0) * prices.gpu_hour


def _price_of(milli_cores: int, memory: int, prices: PodPrices) -> float:
    return milli_cores / 1000.0 * prices.cpu_hour + memory / _GIB * prices.gib_hour

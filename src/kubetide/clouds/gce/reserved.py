"""What the operating system takes of a machine's memory and disks before Kubernetes sees them.

Source: measurements that cluster-autoscaler's GCE provider ships (cloudprovider/gce/reserved).
"""

from __future__ import annotations

import math

_KIB, _MIB, _GIB = 1 << 10, 1 << 20, 1 << 30
LOCAL_SSD_GIB = 375

# KiB that a file system over that many striped local SSDs takes, by distribution.
_SSD_OVERHEAD_KIB = {
    "cos": (
        7289472,
        13725224,
        20031312,
        26332924,
        32634536,
        38946604,
        45254008,
        51556096,
        52837800,
        78686620,
    ),
    "ubuntu": (
        7219840,
        13651496,
        19953488,
        26255100,
        32556712,
        38860588,
        45163896,
        51465984,
        52747688,
        78601704,
    ),
}


def kernel_memory(physical_bytes: int, *, os: str, distribution: str, arch: str) -> int:
    """Return the bytes of memory that the kernel keeps; 0 except on Linux."""
    if os != "linux":
        return 0
    reserved = physical_bytes // 64 + 16 * _MIB
    if physical_bytes > 3 * _GIB:
        reserved += 64 * _MIB
    if physical_bytes <= 8 * _GIB:
        reserved += 8 * _MIB
    if distribution in {"cos", "ubuntu"}:
        # swiotlb and the crash kernel grow with the memory up to a cap.
        reserved += int(min(0.00175 * physical_bytes, 248.0 * _MIB))
    if distribution == "ubuntu":
        reserved += 4 * _MIB
    if distribution == "cos" and arch == "arm64":
        reserved = math.floor(reserved * 0.9971 + 0.5)
    return reserved


def boot_disk_bytes(disk_bytes: int, *, distribution: str, arch: str) -> int:
    """Return the bytes of a boot disk that the system's partitions and file system take."""
    journal = min(100 * _MIB, math.ceil(0.001 * disk_bytes))
    if distribution == "cos":
        taken = math.ceil(0.015635 * disk_bytes) + math.ceil(4.148 * _GIB) + journal
        return taken + (64 * _MIB if arch == "arm64" else 0)
    if distribution == "ubuntu":
        return math.ceil(0.03083 * disk_bytes) + math.ceil(0.171 * _GIB) + journal
    if distribution in {"windows_ltsc", "windows_sac"}:
        return math.ceil(0.1133 * _GIB) + math.ceil(0.010 * _GIB)
    return 0


def local_ssd_bytes(disks: int, *, distribution: str) -> int:
    """Return the bytes that the file system over this many local SSDs takes."""
    table = _SSD_OVERHEAD_KIB.get(distribution)
    if table is None or disks < 1:
        return 0
    row = disks - 1 if disks <= 8 else 8 + (disks > 16)
    return table[row] * _KIB

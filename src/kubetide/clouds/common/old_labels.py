"""Labels of nodes before Kubernetes 1.17, which some providers still set beside the new ones."""

from __future__ import annotations

from typing import Final

OLD_ARCH: Final = "beta.kubernetes.io/arch"
OLD_OS: Final = "beta.kubernetes.io/os"
OLD_INSTANCE_TYPE: Final = "beta.kubernetes.io/instance-type"
OLD_REGION: Final = "failure-domain.beta.kubernetes.io/region"
OLD_ZONE: Final = "failure-domain.beta.kubernetes.io/zone"

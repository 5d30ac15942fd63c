"""The API's managed instance groups, as far as the provider reads them."""

from __future__ import annotations

from msgspec import field

from kubetide.clouds.gce.references import GceRef, last_part
from kubetide.objects.base import ApiStruct, Json
from kubetide.ports.errors import CloudError


class CurrentActions(ApiStruct):
    """How many of a group's instances have each of the actions; all together they are the group's list."""

    none: int = 0
    refreshing: int = 0
    restarting: int = 0
    resuming: int = 0
    starting: int = 0
    stopping: int = 0
    suspending: int = 0
    verifying: int = 0
    creating: int = 0
    creating_without_retries: int = 0
    recreating: int = 0
    deleting: int = 0
    abandoning: int = 0

    @property
    def total(self) -> int:
        """How many instances the group has."""
        return sum(getattr(self, one) for one in self.__struct_fields__)

    def is_changing(self) -> bool:
        """Return whether instances are being made or deleted."""
        return any(
            (self.creating, self.creating_without_retries, self.recreating, self.deleting, self.abandoning)
        )


class DistributionZone(ApiStruct):
    """A zone of a regional group, by its URL."""

    zone: str = ""


class DistributionPolicy(ApiStruct):
    """In which zones a regional group makes instances, and whether evenly."""

    zones: tuple[DistributionZone, ...] | None = None
    target_shape: str = "EVEN"


class UpdatePolicy(ApiStruct):
    """Whether a regional group moves its instances between zones by itself: PROACTIVE, or NONE."""

    instance_redistribution_type: str = "PROACTIVE"


class Manager(ApiStruct):
    """An InstanceGroupManager."""

    name: str = ""
    description: str = ""
    zone: str = ""
    base_instance_name: str = ""
    instance_template: str = ""
    target_size: int | None = None
    target_suspended_size: int = 0
    current_actions: CurrentActions | None = None
    stateful_policy: Json | None = None
    instance_flexibility_policy: Json | None = None
    distribution_policy: DistributionPolicy | None = None
    update_policy: UpdatePolicy = field(default_factory=UpdatePolicy)

    def zones(self, ref: GceRef) -> tuple[str, ...]:
        """Return the zones in which a group makes its instances, ordered. Raises CloudError where nobody says them."""
        if not ref.is_regional:
            return (ref.location,)
        policy = self.distribution_policy or DistributionPolicy()
        zones = tuple(sorted(last_part(one.zone) for one in policy.zones or ()))
        if not zones:
            raise CloudError(f"Compute Engine does not say the zones of {self.name}")
        return zones

    def doubts(self, ref: GceRef) -> tuple[str, ...]:
        """Return what about the group's own settings does not go with an autoscaler."""
        policy = self.distribution_policy or DistributionPolicy()
        redistributes = self.update_policy.instance_redistribution_type != "NONE"
        if not (ref.is_regional and redistributes and policy.target_shape == "EVEN"):
            return ()
        doubt = (
            "Compute Engine ends its machines, also those in use, to have as many in each zone; "
            "set its instance redistribution to NONE"
        )
        return (doubt,)

    @property
    def size(self) -> int:
        """The target, suspended instances included. Raises CloudError where the API does not say it.

        A size that is not known is not 0: the group could grow beyond its maximum.
        """
        if self.target_size is None:
            raise CloudError(f"Compute Engine does not say the target size of {self.name}")
        return self.target_size + self.target_suspended_size

    def running(self, size: int) -> int:
        """Return how many are to run of so many. Raises CloudError where more than those are to be suspended."""
        if size < self.target_suspended_size:
            raise CloudError(f"{self.target_suspended_size} of {self.name} are to be suspended, not {size}")
        return size - self.target_suspended_size

    @property
    def listed_at_least(self) -> int:
        """How many instances the group's list has; 0 where the API does not say."""
        return self.current_actions.total if self.current_actions else 0

    def is_settled(self, running: int) -> bool:
        """Return whether the group is as large as it is to be with so many instances, and nothing goes on."""
        actions = self.current_actions
        return actions is not None and not actions.is_changing() and running == self.target_size

"""Single rules of Compute Engine's provider: templates, errors, prices, machine types, bounds."""

from __future__ import annotations

import re

import msgspec
import pytest
from tests.clouds.vendors import Gce
from tests.clouds.vendors.gce import template, template_url, url
from tests.clouds.vendors.vendor import group_in

from kubetide.clouds.gce.instances import ManagedInstance, managed_instances
from kubetide.clouds.gce.kube_env import parse_kube_env
from kubetide.clouds.gce.machine_types import MachineType, is_custom, parse_custom
from kubetide.clouds.gce.prices import node_price, price_table
from kubetide.clouds.gce.references import region_of
from kubetide.clouds.gce.settings import parse_discoveries
from kubetide.clouds.gce.template import InstanceTemplate, build_node
from kubetide.ports.errors import CloudError
from kubetide.units.quantity import whole
from kubetide.units.time import hours, minutes

WEB = url("web")
MACHINE = MachineType(name="n1-standard-4", cpu=4, memory_bytes=15 << 30)
BOOT = {"boot": True, "initializeParams": {"diskSizeGb": "100", "diskType": "pd-ssd"}}


def node_of(kube_env, *disks):
    properties = {
        "machineType": MACHINE.name,
        "disks": list(disks or (BOOT,)),
        "metadata": {"items": [{"key": "kube-env", "value": kube_env}]},
    }
    read = msgspec.convert({"name": "t", "properties": properties}, InstanceTemplate, strict=False)
    return build_node(read, MACHINE, "us-central1-b")


def price_of(labels=None, annotations=None, **capacity):
    return node_price(
        {"node.kubernetes.io/instance-type": "n1-standard-1", **(labels or {})},
        annotations or {},
        capacity,
        hours(1),
    )


def test_eviction_of_storage_is_a_part_of_all_of_it():
    """A tenth of the file system stays free, however much of it is reserved."""
    node = node_of("AUTOSCALER_ENV_VARS: kube_reserved=cpu=60m,ephemeral-storage=30Gi\n")
    size = whole(node.status.capacity["ephemeral-storage"])
    assert whole(node.status.allocatable["ephemeral-storage"]) == size - (30 << 30) - int(0.1 * size)


def test_a_boot_disk_without_parameters_is_passed_over():
    """The first boot disk that says its size is the node's storage."""
    assert "ephemeral-storage" in node_of("", {"boot": True}, BOOT).status.capacity


def test_a_kube_env_without_content_is_an_error():
    """An item without a value is not the same as no item."""
    with pytest.raises(CloudError, match="no kube-env content in metadata"):
        node_of(None)


def test_the_last_of_equal_keys_of_a_kube_env_counts():
    """Compute Engine does not read the text, so a key may be there twice."""
    text = "NODE_LABELS: a=1\nNODE_TAINTS: a=b:NoSchedule\nNODE_LABELS: a=2\nNODE_TAINTS:\n"
    assert parse_kube_env(text) == {"NODE_LABELS": "a=2"}


def test_messages_are_those_of_errors_that_count():
    """An error that means nothing for a machine that is up adds neither a code nor its text."""
    errors = [
        {"code": "CPU_QUOTA", "message": "no CPUs"},
        {"code": "CONDITION_NOT_MET", "message": "starting"},
    ]
    one = {
        "instance": "https://x/projects/p/zones/z/instances/i",
        "instanceStatus": "RUNNING",
        "currentAction": "RECREATING",
        "lastAttempt": {"errors": {"errors": errors}},
    }
    (found,) = managed_instances([msgspec.convert(one, ManagedInstance)])
    assert (found.error.error_code, found.error.error_message) == ("QUOTA_EXCEEDED", "no CPUs")


def test_an_empty_disk_label_hides_the_annotation():
    """The label's value counts where there is the label, and an empty one means the default type."""
    annotation = {"cluster-autoscaler/gce/boot-disk-type": "pd-ssd"}
    label = {"cloud.google.com/gke-boot-disk": ""}
    assert price_of(label, annotation) == price_of()
    assert price_of({}, annotation) > price_of()


def test_parts_of_gpus_and_of_local_disks_cost_their_part():
    """Amounts are not rounded to whole ones."""
    table = price_table()
    half = price_of(**{"nvidia.com/gpu": "500m"}) - price_of()
    assert half == pytest.approx(table.gpu_usd_per_hour / 2)
    ssd = {"cluster-autoscaler/gce/ephemeral-storage-local-ssd": "true"}
    disks = price_of({}, {**ssd, "cluster-autoscaler/gce/local-ssd-count": "1.5"}) - price_of({}, ssd)
    assert disks == pytest.approx(1.5 * table.local_ssd_gib * table.local_ssd_usd_per_gib_hour)


@pytest.mark.parametrize("name", ["mycustom-4-1024", "n2-highmem-custom-4-1024", "n2-standard-custom"])
def test_custom_is_the_first_or_second_part_of_a_name(name):
    """Other names that hold the word are types that the API knows."""
    assert not is_custom(name)


def test_what_stands_behind_the_memory_of_a_custom_type_does_not_count():
    """The two parts behind ``custom`` are its CPUs and its memory."""
    found = parse_custom("n2-custom-4-1024-ext-lssd")
    assert (found.cpu, found.memory_bytes) == (4, 1 << 30)


def test_a_region_is_what_stands_before_the_last_dash():
    """Only a zone without any dash has none."""
    assert (region_of("us-central1-b"), region_of("local-a")) == ("us-central1", "local")
    with pytest.raises(CloudError, match="unexpected zone: local"):
        region_of("local")


@pytest.mark.parametrize("prefix", ["*", "(?i)pool", r"\pL", "{2}", r"\z"])
def test_a_prefix_is_read_as_re2_reads_it(prefix):
    """Compute Engine filters by RE2, so what that takes is taken, and the rest is refused."""
    (spec,) = parse_discoveries((f"mig:namePrefix={prefix},max=2",))
    assert spec.name_regexp == f"^{prefix}.+"
    with pytest.raises(CloudError, match="must be a valid RE2 regexp"):
        parse_discoveries((f"mig:namePrefix=({prefix},max=2",))


def test_names_that_a_prefix_takes():
    """The whole name must match, and one that is only the prefix does not."""
    (spec,) = parse_discoveries(("mig:namePrefix=(?i)Pool,max=2",))
    assert [spec.takes(name) for name in ("pool-1", "pool", "a-pool-1")] == [True, False, False]


@pytest.mark.parametrize("size", ["99999999999999999999", "1_0", ""])
def test_sizes_of_a_spec_are_integers_of_64_bits(size):
    """Anything else is refused with its text."""
    with pytest.raises(CloudError, match=f"invalid maximum nodes: {size}"):
        parse_discoveries((f"mig:namePrefix=a,max={size}",))


def test_a_minimum_below_zero_is_refused_once_a_group_is_found():
    """The spec passes; a group cannot have such bounds."""

    async def story(here):
        with pytest.raises(CloudError, match="min size must be >= 0"):
            await here.connect().refresh()

    async def without_groups(here):
        assert await here.connect().refresh() == []

    Gce(discovery=("mig:namePrefix=w,min=-1,max=4",)).with_groups().play(story)
    Gce(discovery=("mig:namePrefix=other,min=-1,max=4",)).with_groups().play(without_groups)


class Lasting(dict):
    """Refusals that stay."""

    def pop(self, key, default=None):
        return self.get(key, default)


def test_no_machines_are_created_while_those_that_there_are_cannot_be_listed():
    """Their names must be known, so the increase fails."""

    async def story(here):
        cloud = here.connect()
        await cloud.refresh()
        await here.clock.sleep(minutes(1))
        here.fake.refused_changes = Lasting({"POST listManagedInstances": (403, "forbidden")})
        await cloud.refresh()
        with pytest.raises(CloudError, match="403"):
            await cloud.increase_size(WEB, 1)
        assert "POST createInstances" not in here.fake.calls

    Gce().with_groups().play(story)


def test_a_machine_that_stopped_by_itself_runs_for_its_group():
    """In bulk, too, the group says what becomes of a machine, and a list of the zone does not know it."""

    async def story(here):
        here.fake.statuses = {one.name: "TERMINATED" for one in here.fleet.machines("system")}
        (instance,) = (await group_in(here.connect(), url("system"))).instances
        assert instance.state == "Running"

    Gce(bulk=True).with_groups().play(story)


def test_an_instance_of_a_zone_whose_url_is_none_is_left_out():
    """It hides no group, as it hides none in a group's own list."""

    async def story(here):
        here.fake.strangers = [{"selfLink": "https://compute/odd", "status": "RUNNING"}]
        assert [len(one.instances) for one in await here.connect().refresh()] == [1, 0]

    Gce(bulk=True).with_groups().play(story)


def test_machines_are_listed_anew_after_a_deletion():
    """A list that is still young shows those that were just deleted as running."""

    async def story(here):
        cloud = here.connect()
        await cloud.increase_size(WEB, 1)
        await here.clock.sleep(minutes(1))
        (one,) = (await group_in(cloud, WEB)).instances
        await cloud.delete_nodes(WEB, [one.provider_id])
        group = await group_in(cloud, WEB)
        assert (group.target_size, [one.state for one in group.instances]) == (0, ["Deleting"])

    Gce().with_groups().play(story)


def test_a_group_that_is_not_there_ends_only_the_first_refresh():
    """A wrong URL is named at the start; then it keeps no other group from growing."""

    async def story(here):
        cloud = here.connect()
        with pytest.raises(CloudError, match="404"):
            await cloud.refresh()
        groups = {one.id: one for one in await cloud.refresh()}
        assert [one.stale for one in groups.values()].count("") == 2
        assert ("404" in groups[url("absent")].stale, groups[url("absent")].max_size) == (True, 0)

    Gce().with_groups(("absent", 0, 3)).play(story)


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ("kube_reserved=cpu=60m,memory=1Gi;evictionHard=memory.available=100Mi;arch=arm64", []),
        ("", []),
        (None, []),
        ("autoscaling_options=scaledownunneededtime=3m;", ["'' is not name=value; what stands behind it"]),
        ("kube_reserved=cpu=60m,memory=1 GB", ["kube_reserved: memory: "]),
        ("kube_reserved=cpu", ["kube_reserved: .*val: cpu; all of it is ignored"]),
        ("extended_resources=a.com/b=-1,a.com/c=2", ["extended_resources: a.com/b: -1 is negative"]),
        ("arch=x64;os_distribution=rhel", ["os_distribution 'rhel' is none of", "arch 'x64' is none of"]),
    ],
)
def test_what_is_passed_over_in_a_kube_env_is_a_warning_of_the_group(variables, words):
    """It is named with its variable; what else is there counts."""

    async def story(here):
        env = "OTHER: x\n" if variables is None else f'AUTOSCALER_ENV_VARS: "{variables}"\n'
        metadata = {"items": [{"key": "kube-env", "value": env}]}
        here.fake.templates["v1"] = {**template("", metadata=metadata), "name": "v1"}
        here.fake.managers["web"] = {"instanceTemplate": template_url("v1")}
        return (await group_in(here.connect(), WEB)).warnings or ()

    found = Gce().with_groups().play(story)
    assert len(found) == len(words), found
    assert all(
        re.search(f"kube-env AUTOSCALER_ENV_VARS: {word}", one)
        for one, word in zip(found, words, strict=True)
    )


def test_options_that_cannot_be_read_leave_the_last_ones_in_force():
    """A new template with malformed options is a warning."""

    async def story(here):
        for version, options in (("v1", "scaledownunneededtime=3m"), ("v2", "foo")):
            env = f"AUTOSCALER_ENV_VARS: autoscaling_options={options}\n"
            metadata = {"items": [{"key": "kube-env", "value": env}]}
            here.fake.templates[version] = {**template("", metadata=metadata), "name": version}
        cloud = here.connect()
        for version in ("v1", "v2"):
            here.fake.managers["web"] = {"instanceTemplate": template_url(version)}
            group = await group_in(cloud, WEB)
            assert group.options.scale_down_unneeded_time == "3m0s"
        assert "cannot be read" in group.warnings[0]

    Gce().with_groups().play(story)

"""Catalogues: files, what they do to the groups of any cloud, and what differs from cloud and nodes."""

from __future__ import annotations

import asyncio
import json
import re

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.docs.tables import DOCS, rows, section

from kubetide.cli.main import cli
from kubetide.clouds.catalog import CatalogError, Shape, parse_catalog, with_catalog
from kubetide.clouds.catalog.apply import with_catalog_applied
from kubetide.clouds.catalog.compare import compare
from kubetide.clouds.catalog.tables import ALIASES, COLUMNS
from kubetide.clouds.common.template import INSTANCE_TYPE, ZONE, template_node
from kubetide.embedded.apiserver.store import EmbeddedCluster, Store
from kubetide.embedded.cloud import EmbeddedCloud, GroupSpec
from kubetide.ports.cloud import NodeGroup, NodeTemplate, Offering
from kubetide.runtime.configuration.config import ConfigError, flag_values, make_config
from kubetide.runtime.timing.clock import run_virtual
from kubetide.simulate.scenarios.machines import catalogue_of
from kubetide.simulate.scenarios.scenario import ScenarioError, load_scenario
from kubetide.testing.cloud_battery import CASES, CloudUnderTest
from kubetide.units.time import minutes, parse_rfc3339

CSV = """\
type,provider,zone,market,price_per_hour,count,cpu,memory,pods,gpus,allocatable_cpu,allocatable_memory,note
m5.large,,,on-demand,0.08,,2,8Gi,29,,1930m,,negotiated
m5.large,,zone-b,on-demand,0.09,,,,,,,,
m5.large,,,spot,0.03,,,,,,,,
m5.large,,,reserved,0.02,3,,,,,,,paid until May
c5.large,aws,,,0.07,,2,4Gi,,,,,
c5.large,gce,,,0.06,,2,4Gi,,,,,
"""
YAML = """\
- {type: m5.large, price_per_hour: 0.08, cpu: 2, memory: 8Gi}
- {type: m5.large, market: reserved, price_per_hour: 0.02, count: 3}
"""


def group(name="workers", *, size=0, ways=(), memory="7Gi", allocatable_memory="6Gi", price=None):
    labels = {INSTANCE_TYPE: "m5.large", ZONE: "zone-a"}
    capacity, allocatable = (
        {"cpu": "2", "memory": memory, "pods": "110"},
        {"cpu": "2", "memory": allocatable_memory, "pods": "110"},
    )
    node = template_node(name, labels=labels, taints=(), capacity=capacity, allocatable=allocatable)
    return NodeGroup(
        id=name,
        max_size=9,
        target_size=size,
        template=NodeTemplate(node=node, source="the cloud"),
        offerings=tuple(ways) or None,
        price_per_hour=price,
    )


def way(zone="zone-a", market="on-demand", price=0.1, type_="m5.large", share=None):
    return Offering(instance_type=type_, zone=zone, market=market, price_per_hour=price, share=share)


def applied(*groups, text=CSV, provider="aws"):
    return with_catalog_applied(groups, parse_catalog(text, "prices.csv").of(provider))


def test_both_forms_say_the_same():
    """A YAML list is the same as lines of CSV."""
    lines = "type,market,price_per_hour,count,cpu,memory\nm5.large,,0.08,,2,8Gi\nm5.large,reserved,0.02,3,,\n"
    by_csv, by_yaml = parse_catalog(lines, "x"), parse_catalog(YAML, "x", is_yaml=True)
    for row, other in zip(by_csv.rows, by_yaml.rows, strict=True):
        assert (row.type, row.market, row.price_per_hour, row.count, row.shape) == (
            other.type,
            other.market,
            other.price_per_hour,
            other.count,
            other.shape,
        )
    assert by_csv.shape("m5.large") == Shape(cpu=2000, memory=8 << 30)


def test_public_tables_of_types_are_catalogues():
    """The names of public tables are understood; columns that say nothing here are reported in one sentence."""
    text = "provider,type,vcpu,memory_bytes,gpu_count,max_pods,ondemand_usd_per_hour,source\naws,x,8,1024,0,58,0.2,web\n"
    catalog = parse_catalog(text, "types.csv")
    assert catalog.shape("x") == Shape(cpu=8000, memory=1024, pods=58, gpus=0)
    assert catalog.price("x", "anywhere", "on-demand") == 0.2
    assert len(catalog.warnings) == 1
    assert "no effect has source" in catalog.warnings[0]


def test_prices_are_by_type_zone_and_market():
    """A price of the zone counts before one of any; what the catalogue does not price stays as the cloud says it."""
    ways = [way(), way("zone-b"), way(market="spot"), way(type_="r5.large", price=0.5)]
    text = CSV.replace("reserved,0.02,3", "reserved,0.02,0")
    (found,) = applied(group(ways=ways), text=text)
    reported = {(one.instance_type, one.zone, one.market): one.price_per_hour for one in found.offerings}
    assert reported == {
        ("m5.large", "zone-a", "on-demand"): 0.08,
        ("m5.large", "zone-b", "on-demand"): 0.09,
        ("m5.large", "zone-a", "spot"): 0.03,
        ("m5.large", "", "reserved"): 0.02,
        ("r5.large", "zone-a", "on-demand"): 0.5,
    }
    assert found.price_per_hour == 0.5, "the most expensive way that the next node may come"


def test_a_row_of_the_provider_counts_before_one_of_another():
    """Rows of other providers have no part in it."""
    prices = [
        applied(group(ways=[way(type_="c5.large")]), provider=one)[0].price_per_hour
        for one in ("aws", "gce", "azure")
    ]
    assert prices == [0.07, 0.06, None]


def test_a_commitment_is_used_up_by_the_machines_that_there_are():
    """As long as a commitment covers more machines than there are, the next one costs its price."""
    for sizes, left, price in (((0, 0), 3, 0.02), ((1, 1), 1, 0.02), ((2, 1), 0, 0.08), ((5, 0), 0, 0.08)):
        groups = [group(f"g{at}", size=size, ways=[way()]) for at, size in enumerate(sizes)]
        found = applied(*groups)
        assert [(one.offerings[0].market, one.offerings[0].count) for one in found] == [
            ("reserved", left)
        ] * 2
        assert [one.price_per_hour for one in found] == [price] * 2


@given(st.lists(st.integers(0, 9), min_size=1, max_size=5), st.integers(0, 9), st.integers(0, 9))
def test_no_commitment_is_counted_on_twice(sizes, of_zone, of_any):
    """The remaining commitments are what they cover less the existing machines, and at least 0."""
    text = f"type,zone,market,price_per_hour,count\nm5.large,zone-a,reserved,0,{of_zone}\nm5.large,,reserved,0,{of_any}\n"
    found = applied(*(group(f"g{at}", size=size, ways=[way()]) for at, size in enumerate(sizes)), text=text)
    left = sum(one.count for one in found[0].offerings if one.market == "reserved")
    assert left == max(of_zone + of_any - sum(sizes), 0)


def test_a_group_without_offerings_is_priced_by_its_template():
    """For a provider without offerings, type and zone come from the labels of the template."""
    (found,) = applied(group(), text="type,price_per_hour\nm5.large,0.08\n")
    assert found.price_per_hour == 0.08
    assert [(one.instance_type, one.zone) for one in found.offerings] == [("m5.large", "zone-a")]


def test_a_group_without_offerings_has_the_price_of_its_market():
    """Labels of the template that say spot: the price of a machine on demand is not that of the group."""
    known = group(price=0.03)
    node = known.template.node
    labels = {**node.metadata.labels, "karpenter.sh/capacity-type": "spot"}
    node = replace(node, metadata=replace(node.metadata, labels=labels))
    spot = replace(known, template=replace(known.template, node=node))
    rows = "type,market,price_per_hour\nm5.large,on-demand,0.08\n"
    assert applied(spot, text=rows)[0].price_per_hour == 0.03
    assert applied(spot, text=f"{rows}m5.large,spot,0.02\n")[0].price_per_hour == 0.02


def test_shapes_replace_those_of_the_template_but_not_what_the_system_reserves():
    """Memory grows by what the catalogue says more; allocatable CPU is the catalogue's own; the rest is the cloud's."""
    (found,) = applied(group())
    status = found.template.node.status
    assert status.capacity == {"cpu": "2", "memory": "8Gi", "pods": "29"}
    assert status.allocatable == {"cpu": "1930m", "memory": "7Gi", "pods": "29"}
    assert found.template.source == "catalogue prices.csv for m5.large; the rest: the cloud"


def test_a_group_of_several_types_has_the_least_shape_or_none():
    """The template promises what all types have; where the catalogue does not know one, the cloud's stays."""
    (both,) = applied(group(ways=[way(), way(type_="c5.large")]))
    assert both.template.node.status.capacity["memory"] == "4Gi"
    mixed = group(ways=[way(), way(type_="unheard.of")])
    (one,) = applied(mixed)
    assert one.template == mixed.template


def test_what_the_catalogue_does_not_say_is_as_the_cloud_says_it():
    """A group of another type comes back as it was."""
    other = group(ways=[way(type_="r5.large")])
    assert applied(other) == [other]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("name,price\nx,1\n", "x.csv: the first line has no column `type`"),
        ("type\n", "x.csv: no rows"),
        ("type,price_per_hour\nx,cheap\n", "x.csv, line 2: price_per_hour: .*cheap"),
        ("type,price_per_hour\nx,-1\n", "a price is 0 or more"),
        ("type,price_per_hour\nx,inf\n", "a price is 0 or more"),
        ("type,memory\nx,8GB\n", "x.csv, line 2: memory: .*8GB"),
        ("type,market\nx,futures\n", "market 'futures'; it is one of on-demand, spot, reserved"),
        ("type,count\nx,2\n", "count 2 is for a commitment; set market to reserved"),
        ("type,price_per_hour\nx,1\n\nx,2\n", "line 4: x, any zone, on-demand stands in x.csv, line 2 too"),
        ("type,zone,cpu\nx,a,1\nx,b,2\n", "line 3: x has another shape than in x.csv, line 2"),
        ("type,cpu,allocatable_cpu\nx,2,3\n", "allocatable_cpu 3 is more than 2"),
        ("type\nx,y\n", "line 2: 2 cells, and the first line names 1 columns"),
        ("type,cpu\n,2\n", "line 2: type is empty"),
    ],
)
def test_a_bad_line_is_named(text, problem):
    """Line, column and fix are in the message."""
    with pytest.raises(CatalogError, match=problem):
        parse_catalog(text, "x.csv")


@pytest.mark.parametrize(
    ("text", "problem"),
    [("a: 1", "no list"), ("- {type: [x]}", "item 1: not a map of single values"), ("- [", "no YAML")],
)
def test_a_bad_item_is_named(text, problem):
    """The same for YAML."""
    with pytest.raises(CatalogError, match=problem):
        parse_catalog(text, "x.yaml", is_yaml=True)


@settings(max_examples=50)
@given(st.text(max_size=60), st.booleans())
def test_any_text_is_read_or_refused(text, is_yaml):
    """Whatever a file holds, the answer is a catalogue or a CatalogError."""
    try:
        catalog = parse_catalog(text, "x", is_yaml=is_yaml)
    except CatalogError:
        return
    assert catalog.rows


def test_what_differs_is_reported_with_all_sides():
    """Prices against the cloud's, shapes against templates and the least of the nodes; what agrees is counted."""
    catalog = parse_catalog("type,price_per_hour,memory,cpu\nm5.large,0.08,8Gi,2\nunused,1,1Gi,1\n", "x")
    nodes = [
        template_node(
            name, labels={INSTANCE_TYPE: "m5.large"}, taints=(), capacity={"cpu": "2", "memory": memory}
        )
        for name, memory in (("a", "7500Mi"), ("b", "7600Mi"))
    ]
    strange = template_node("c", labels={INSTANCE_TYPE: "t3.nano"}, taints=(), capacity={"cpu": "2"})
    found = compare(catalog, [group(ways=[way()]), group("other", ways=[way()])], [*nodes, strange])
    reported = [
        (one.type, one.what, one.catalog, one.cloud, one.nodes, one.change) for one in found.differences
    ]
    assert reported == [
        ("m5.large", "price on-demand zone-a", "0.08", "0.1", "", -20.0),
        ("m5.large", "capacity memory", "8Gi", "7Gi", "7500Mi", 9.2),
    ]
    assert (found.agreed, found.unlisted, found.unused) == (1, ("t3.nano",), 1)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_a_cloud_under_a_catalogue_passes_the_battery(case):
    """A catalogue changes nothing of what a cloud promises."""

    async def main(clock):
        groups = [
            GroupSpec(name="empty", instance_type="m5.large", max_size=3),
            GroupSpec(name="kept", instance_type="m5.large", min_size=1, max_size=2),
        ]
        inner = EmbeddedCloud(EmbeddedCluster(Store(), clock), clock, seed=1, groups=groups)
        await inner.start()
        cloud = with_catalog(inner, parse_catalog(CSV, "prices.csv"))
        prices = {one.id: one.price_per_hour for one in await cloud.refresh()}
        assert prices == {"empty": 0.02, "kept": 0.02}
        machines = asyncio.create_task(inner.run())
        await case(CloudUnderTest(cloud, clock, group="empty", kept="kept", patience=minutes(20)))
        machines.cancel()

    run_virtual(main, start=parse_rfc3339("2026-03-02T00:00:00Z"))


def test_a_catalogue_needs_a_cloud():
    """The setting without a provider is an error that names both."""
    with pytest.raises(ConfigError, match=r"catalog .*cloud-provider"):
        make_config([("--", flag_values(["--catalog=prices.csv"]))])


SCENARIO = """\
name: own machines
duration: 10m
catalog: machines.csv
nodeGroups:
  - {name: racks, instanceType: rack-32, max: 3, initial: 1}
"""


@pytest.fixture
def scenario(tmp_path):
    (tmp_path / "machines.csv").write_text(
        "type,price_per_hour,cpu,memory,pods,allocatable_cpu\nrack-32,0.4,32,64Gi,200,31\nother,1,,,,\n"
    )
    path = tmp_path / "own.yaml"
    path.write_text(SCENARIO)
    return path


def test_a_scenario_takes_its_machines_from_a_catalogue(scenario):
    """Types of groups that the catalogue describes are as it says; types that no group has play no part."""
    kind = catalogue_of(load_scenario(scenario))["rack-32"]
    assert (kind.cpu_milli, kind.memory_bytes, kind.pods, kind.price_per_hour) == (32000, 64 << 30, 200, 0.4)
    assert kind.reserved_cpu_milli == 1000


def test_a_scenario_whose_catalogue_says_no_size_is_refused(scenario):
    """The type and the columns are named."""
    (scenario.parent / "machines.csv").write_text("type,price_per_hour\nrack-32,0.4\n")
    with pytest.raises(
        ScenarioError, match=r"own\.yaml line 3: catalog: .*rack-32: a scenario needs cpu and memory"
    ):
        load_scenario(scenario)


@pytest.mark.parametrize(("content", "problem"), [(None, "No such file"), (b"type\n\xff", "not UTF-8 text")])
def test_a_scenario_whose_catalogue_cannot_be_read_is_refused(scenario, content, problem):
    """The line of the scenario and the file are named."""
    file = scenario.parent / "machines.csv"
    file.unlink() if content is None else file.write_bytes(content)
    with pytest.raises(ScenarioError, match=rf"own\.yaml line 3: catalog: .*machines\.csv: .*{problem}"):
        load_scenario(scenario)


def test_the_commands_show_check_and_compare(scenario):
    """Each says what the file says; compare ends with 1 where a number differs."""
    file = scenario.parent / "machines.csv"
    run = CliRunner().invoke
    checked = run(cli, ["catalog", "check", str(file)])
    assert checked.output == f"{file}: 2 instance types, 2 rows, 0 commitments\n"
    shown = run(cli, ["catalog", "show", str(file), "--type=rack-32", "-o", "json"])
    assert json.loads(shown.output)["rows"][0]["allocatable_cpu"] == "31"
    agreed = run(cli, ["catalog", "compare", str(file), str(scenario), "--after=2m", "-o", "json"])
    assert (agreed.exit_code, json.loads(agreed.output)["differences"]) == (0, [])
    assert json.loads(agreed.output)["agreed"] == 5
    other = scenario.parent / "other.csv"
    other.write_text("type,price_per_hour,memory\nrack-32,0.5,64Gi\n")
    differs = run(cli, ["catalog", "compare", str(other), str(scenario), "--after=2m"])
    assert differs.exit_code == 1
    assert "price on-demand" in differs.output
    assert "+25.0 %" in differs.output


def test_the_example_of_the_page_can_be_used(tmp_path):
    """The file that the page shows is read, and says what the page says of it."""
    page = (DOCS / "catalog.md").read_text(encoding="utf-8")
    text = page.split("$ cat prices.csv\n")[1].split("$ kubetide")[0]
    (tmp_path / "prices.csv").write_text(text)
    said = CliRunner().invoke(cli, ["catalog", "check", str(tmp_path / "prices.csv")]).output
    assert said.removeprefix(f"{tmp_path}/") in page


def test_the_page_names_every_column():
    """The page lists the columns and the names of public tables, and its table has no others."""
    page = (DOCS / "catalog.md").read_text(encoding="utf-8")
    named = [one for row in rows(section(page, "## The file")) for one in re.findall(r"`([a-z_]+)`", row[0])]
    assert sorted(named) == sorted(COLUMNS)
    assert all(f"`{alias}`" in page for alias in ALIASES)

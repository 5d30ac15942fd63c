"""One schema for file, environment and flags."""

from __future__ import annotations

import pytest

from kubetide.horizontal.settings import Settings as HorizontalSettings
from kubetide.nodes.settings import Settings as NodesSettings
from kubetide.runtime.configuration.config import (
    ConfigError,
    environment_values,
    flag_values,
    make_config,
    read_file,
)
from kubetide.units.time import seconds


def test_flags_hold_over_the_environment_and_that_over_the_file(tmp_path):
    """Each value comes from the nearest source, which is named."""
    file = tmp_path / "kubetide.yaml"
    file.write_text(
        "controllers: [horizontal, nodes]\ncloud-provider: embedded\nscan-interval: 20s\nact: true\nkube-api-qps: 7\n"
    )
    environment = environment_values({"KUBETIDE_SCAN_INTERVAL": "30s", "KUBETIDE_ACT": "false", "HOME": "/"})
    flags = flag_values(["--scan_interval=40s", "--log-format", "json", "--skip-nodes-with-local-storage"])
    config = make_config([(str(file), read_file(file)), ("environment", environment), ("--", flags)])
    assert config.run.controllers == ("horizontal", "nodes")
    assert config.run.kube_api_qps == 7
    assert (config.run.act, config.run.log_format) == (False, "json")
    assert config.loops.of(NodesSettings).scan_interval == seconds(40)
    assert config.loops.of(NodesSettings).skip_nodes_with_local_storage is True
    assert config.sources["act"] == "KUBETIDE_ACT"
    assert config.sources["scan-interval"] == "--scan-interval"
    assert config.sources["controllers"] == f"{file}: controllers"


@pytest.mark.parametrize(
    ("layer", "text"),
    [
        (
            ("--", {"scan-intervall": "1s"}),
            "--scan-intervall: there is no such setting; did you mean scan-interval?",
        ),
        (("environment", {"act": "yes"}), "KUBETIDE_ACT: 'yes' cannot be read; it takes true or false"),
        (
            ("a.yaml", {"scan-interval": "soon"}),
            "a.yaml: scan-interval: --scan-interval: 'soon' cannot be read",
        ),
        (("--", {"controllers": "horizontal,cron"}), "there is no loop 'cron'; there are horizontal, nodes"),
        (("--", {"controllers": "nodes"}), "set cloud-provider"),
        (("--", {"leader-elect-renew-deadline": "20s"}), "leader-elect-lease-duration must be greater"),
        (
            (
                "--",
                {
                    "leader-elect-lease-duration": "900ms",
                    "leader-elect-renew-deadline": "800ms",
                    "leader-elect-retry-period": "100ms",
                },
            ),
            "leader-elect-lease-duration must be at least 1s",
        ),
        (("--", {"log-format": "xml"}), "it takes console or json"),
        (("--", {"kube-api-qps": "0"}), "kube-api-qps must be greater than 0"),
    ],
)
def test_what_is_wrong_is_named_with_its_place_and_the_fix(layer, text):
    with pytest.raises(ConfigError) as found:
        make_config([layer])
    assert text in str(found.value)


@pytest.mark.parametrize("provider", ["aws", "azure", "gce", "alicloud", "tencentcloud", "labels"])
def test_groups_that_cannot_be_read_are_named_with_the_flag_and_the_form(provider):
    """Each provider with groups by name refuses a value without bounds before anything is opened."""
    with pytest.raises(ConfigError) as found:
        make_config([("--", {"cloud-provider": provider, "nodes": "workers\n5:1:a"})])
    first, second = str(found.value).split("; --nodes=5:1:a: ")
    assert first.startswith("--nodes=workers: ")
    assert "; give MIN:MAX:" in first
    assert "; give MIN:MAX:" in second


def test_variables_that_others_set_are_passed_over_and_slips_are_not():
    """A Service of the name brings a dozen variables; a setting that is misspelt must not be lost."""
    others = {
        "KUBETIDE_SERVICE_HOST": "10.0.0.1",
        "KUBETIDE_PORT_8085_TCP": "tcp://",
        "KUBETIDE_KUBECTL": "/bin",
    }
    assert environment_values(others) == {}
    slip = environment_values({"KUBETIDE_SCAN_INTERVALL": "1s"})
    with pytest.raises(ConfigError, match="KUBETIDE_SCAN_INTERVALL: there is no such setting"):
        make_config([("environment", slip)])


@pytest.mark.parametrize(
    ("arguments", "text"),
    [(["now"], "'now' belongs to no flag"), (["--scan-interval"], "--scan-interval: a value is missing")],
)
def test_arguments_that_are_no_flags(arguments, text):
    with pytest.raises(ConfigError, match=text):
        flag_values(arguments)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("- a\n", "no mapping"),
        ("a: {b: 1}\n", "a: takes a text"),
        ("a: [\n", "is not YAML"),
        ("act: true\nact: false\n", "line 2: act stands in line 1 already"),
        ("scan-interval: 10s\n\nscan_interval: 20s\n", "line 3: scan-interval stands in line 1 already"),
        (None, "cannot be read"),
    ],
)
def test_files_that_hold_no_settings(tmp_path, content, text):
    file = tmp_path / "kubetide.yaml"
    if content is not None:
        file.write_text(content)
    with pytest.raises(ConfigError, match=text):
        read_file(file)


def test_gates_are_no_switch():
    """Their value may follow behind a blank, also where a loop has but one gate."""
    flags = flag_values(["--controllers=vertical", "--vpa-feature-gates", "PerVPAConfig=true"])
    loops = make_config([("--", flags)]).loops.by_name
    assert loops["recommender"].per_vpa_config
    assert loops["updater"].gates.per_vpa_config


def test_a_list_that_is_given_again_grows_and_any_other_flag_is_the_last_one():
    """Upstream's StringSlice flags append; for a number or a text the last value counts."""
    flags = flag_values(
        [
            "--startup-taint=a",
            "--startup-taint",
            "b,c",
            "--startup_taint=d",
            "--controllers=horizontal",
            "--controllers=nodes",
            "--feature-gates=HPAScaleToZero=true",
            "--feature-gates=PodLevelResources=false",
            "--expander=random",
            "--expander=least-nodes",
            "--scan-interval=1s",
            "--scan-interval=2s",
            "--cloud-provider=embedded",
        ]
    )
    config = make_config([("--", flags)])
    assert config.loops.of(NodesSettings).startup_taint == ("a", "b", "c", "d")
    assert config.run.controllers == ("horizontal", "nodes")
    assert config.loops.of(HorizontalSettings).gates.scale_to_zero is True
    assert config.loops.of(HorizontalSettings).gates.pod_level_resources is False
    assert (config.loops.of(NodesSettings).expander, config.loops.of(NodesSettings).scan_interval) == (
        "least-nodes",
        seconds(2),
    )


def test_settings_of_loops_that_run_only_where_they_are_named():
    """A variable of theirs is read, and without the loop it is an error that names the loop."""
    layers = [("environment", environment_values({"KUBETIDE_SCHEDULES_ZONE": "Europe/Berlin"}))]
    config = make_config([*layers, ("--", {"controllers": "horizontal,schedules"})])
    assert config.values["schedules-zone"] == "Europe/Berlin"
    with pytest.raises(ConfigError, match=r"KUBETIDE_SCHEDULES_ZONE: belongs to the loop schedules; name it"):
        make_config(layers)

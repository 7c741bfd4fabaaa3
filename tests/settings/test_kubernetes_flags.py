"""Tests of the flags of Kubernetes' programs: each flag has one meaning, and is either translated or refused."""

from __future__ import annotations

import pytest

from ctrlmgr.errors import SettingsError
from ctrlmgr.settings import declarations, flags, load
from ctrlmgr.settings.kubernetes_flags.meanings import Sets
from ctrlmgr.settings.kubernetes_flags.table import MEANINGS
from ctrlmgr.settings.kubernetes_flags.translated_flags import meaning_texts, translate
from ctrlmgr.settings.kubernetes_flags.upstream_flags import KUBE_APISERVER, KUBE_CONTROLLER_MANAGER
from tests.generated import OF_THE_COMMAND


def test_the_table_sets_only_existing_settings() -> None:
    keys = {meaning.key for meaning in MEANINGS.values() if isinstance(meaning, Sets)}
    assert keys <= declarations().keys()


def test_every_flag_of_both_programs_has_one_meaning() -> None:
    own, translated = {*flags().values()}, {flag for flag, _ in meaning_texts()}
    assert (KUBE_APISERVER | KUBE_CONTROLLER_MANAGER) - own - translated == OF_THE_COMMAND.keys()
    assert own & MEANINGS.keys() == set()


@pytest.mark.parametrize(
    ("given", "listen"),
    [
        ({"--bind-address": "192.0.2.1", "--secure-port": "7443"}, "192.0.2.1:7443"),
        ({"--bind-address": "::"}, "[::]:6443"),
        ({"--secure-port": "7443"}, "0.0.0.0:7443"),
    ],
)
def test_address_and_port_form_one_setting(given: dict[str, str], listen: str) -> None:
    loaded = load({}, {}, translated=translate(given).values)
    assert loaded.settings.server.listen == listen
    assert loaded.origins["server.listen"] == "--bind-address"


@pytest.mark.parametrize("port", ["0", "65536", "https"])
def test_an_invalid_port_is_refused(port: str) -> None:
    with pytest.raises(SettingsError, match=f"--secure-port is '{port}'; it must be a port"):
        translate({"--secure-port": port})


@pytest.mark.parametrize(
    ("verbosity", "level"), [("0", "info"), ("3", "info"), ("4", "debug"), ("10", "debug"), ("=2", "info")]
)
def test_verbosity_is_a_log_level(verbosity: str, level: str) -> None:
    assert load({}, {}, translated=translate({"--v": verbosity}).values).settings.log.level == level


@pytest.mark.parametrize(("verbosity", "logs"), [("2", False), ("3", True), ("=10", True)])
def test_from_a_verbosity_of_3_on_requests_are_logged(verbosity: str, logs: bool) -> None:
    assert load({}, {}, translated=translate({"--v": verbosity}).values).settings.log.requests is logs


def test_the_verbosity_of_modules_is_a_level() -> None:
    settings = load({"log.modules": "controller=4,ctrlmgr.server.*=0"}, {}).settings
    assert settings.log.module_levels == (("controller", "debug"), ("ctrlmgr.server.*", "info"))


@pytest.mark.parametrize("modules", ["controller", "controller=debug", "=4"])
def test_an_invalid_verbosity_of_a_module_is_refused(modules: str) -> None:
    with pytest.raises(SettingsError, match="PATTERN=N"):
        load({"log.modules": modules}, {})


def test_the_flag_of_a_setting_overrides_a_translated_one() -> None:
    translated = translate({"--v": "4", "--logging-format": "json"}).values
    settings = load({"log.level": "error"}, {"CTRLMGR_LOG_FORMAT": "console"}, translated=translated).settings
    assert (settings.log.level, settings.log.format) == ("error", "json")


def test_an_invalid_value_names_the_given_flag() -> None:
    with pytest.raises(SettingsError, match="--logging-format is 'xml'; it must be text or json"):
        translate({"--logging-format": "xml"})


def test_a_flag_without_effect_is_a_warning() -> None:
    translation = translate({"--etcd-servers": "https://127.0.0.1:2379"})
    assert translation.values == {}
    (warning,) = translation.warnings
    assert warning.startswith("--etcd-servers has no effect: there is no etcd;")


def test_a_fixed_flag_accepts_only_its_value() -> None:
    assert translate({"--cloud-provider": "external"}).warnings == ()
    with pytest.raises(SettingsError, match="--cloud-provider=gce: ctrlmgr has no cloud controllers; use external"):
        translate({"--cloud-provider": "gce"})


@pytest.mark.parametrize("flag", ["--cloud-config", "--debug-socket-path", "--egress-selector-config-file"])
def test_an_empty_value_asks_for_nothing(flag: str) -> None:
    assert translate({flag: ""}) == ({}, ())


def test_a_refused_flag_contains_advice() -> None:
    with pytest.raises(SettingsError, match="--admission-control is not supported: use --enable-admission-plugins"):
        translate({"--admission-control": "NodeRestriction"})

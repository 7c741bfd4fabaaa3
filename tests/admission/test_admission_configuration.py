"""Tests of the enabled admission plugins and of their configuration file: each error is reported in one line."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from ctrlmgr.admission.admission_configuration import read_configuration
from ctrlmgr.admission.plugin_registry import PLUGINS, enabled, new_chain
from ctrlmgr.admission.podsecurity.pod_security_configuration import read_pod_security
from ctrlmgr.authorization.authorizer import AlwaysAllow
from ctrlmgr.errors import SettingsError
from ctrlmgr.settings import AdmissionSettings
from ctrlmgr.settings.configuration_files import Document
from ctrlmgr.testing import FakeClock
from tests.admission.stage import Write
from tests.kinds.stage import KINDS

KNOWN = ("EventRateLimit", "PodNodeSelector")


class Limits(msgspec.Struct, forbid_unknown_fields=True):
    limits: list[dict[str, int]] = []


def names(on: tuple[str, ...] = (), off: tuple[str, ...] = ()) -> list[str]:
    return [entry.name for entry in enabled(AdmissionSettings(enable_plugins=on, disable_plugins=off))]


def test_plugins_run_in_kubernetes_order_regardless_of_configuration_order() -> None:
    on = names(("NodeRestriction", "AlwaysPullImages", "NamespaceExists"))
    found = [on.index(each) for each in ("NamespaceExists", "LimitRanger", "NodeRestriction", "AlwaysPullImages")]
    assert found == sorted(found)


def test_default_plugins_can_be_disabled() -> None:
    assert "PodSecurity" in names()
    assert "PodSecurity" not in names(off=("PodSecurity",))
    assert "AlwaysPullImages" not in names()


@pytest.mark.parametrize(
    ("on", "off", "problem"),
    [
        (("Podsecurity",), (), "--enable-admission-plugins: .* 'Podsecurity'; did you mean 'PodSecurity'"),
        ((), ("Nothing at all",), "--disable-admission-plugins: there is no admission plugin 'Nothing at all'$"),
        (("Priority",), ("Priority",), "both name Priority"),
    ],
)
def test_unknown_plugin_names_are_refused(on: tuple[str, ...], off: tuple[str, ...], problem: str) -> None:
    with pytest.raises(SettingsError, match=problem):
        names(on, off)


def written(folder: Path, plugins: str, version: str = "apiserver.config.k8s.io/v1") -> str:
    file = folder / "admission.yaml"
    file.write_text(f"apiVersion: {version}\nkind: AdmissionConfiguration\nplugins:\n{plugins}", encoding="utf-8")
    return str(file)


def test_a_plugin_configuration_is_inline_or_in_a_named_file(tmp_path: Path) -> None:
    (tmp_path / "limits.yaml").write_text("apiVersion: v1\nkind: Limits\nlimits: [{qps: 1}]\n", encoding="utf-8")
    inner = "- name: PodNodeSelector\n  configuration: {apiVersion: v1, kind: Limits}\n"
    found = read_configuration(written(tmp_path, f"- name: EventRateLimit\n  path: limits.yaml\n{inner}"), KNOWN)
    assert found["EventRateLimit"].read("Limits", ("v1",), Limits).limits == [{"qps": 1}]
    assert found["PodNodeSelector"].read("Limits", ("v1",), Limits).limits == []


def test_without_a_file_plugins_have_no_configuration() -> None:
    assert read_configuration("", KNOWN) == {}


@pytest.mark.parametrize(
    ("plugins", "problem"),
    [
        ("- name: Odd\n", r"admission.yaml:4: there is no admission plugin 'Odd'"),
        ("- name: EventRateLimit\n- name: EventRateLimit\n  configuration: {}\n", None),
        ("- name: EventRateLimit\n  paths: x\n", r"admission.yaml:5: .*unknown field `paths`"),
        ("- path: x\n", r"admission.yaml:4: .*missing required field `name`"),
        ("- name: EventRateLimit\n  path: [\n", r"admission.yaml:6: not valid YAML"),
        ("- name: EventRateLimit\n  path: absent.yaml\n", r"absent.yaml: the file cannot be read: No such file"),
    ],
)
def test_a_broken_file_is_refused_with_its_line(tmp_path: Path, plugins: str, problem: str | None) -> None:
    file = written(tmp_path, plugins)
    if problem is None:
        assert list(read_configuration(file, KNOWN)) == ["EventRateLimit"]
        return
    with pytest.raises(SettingsError, match=problem) as refused:
        read_configuration(file, KNOWN)
    assert "\n" not in str(refused.value)


def test_an_unknown_kind_or_version_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"admission.yaml:1: apiVersion must be .*, not 'v2'"):
        read_configuration(written(tmp_path, "  []", "v2"), KNOWN)


def test_an_invalid_plugin_configuration_is_refused_with_its_line(tmp_path: Path) -> None:
    text = "- name: EventRateLimit\n  configuration:\n    apiVersion: v1\n    kind: Limits\n    limits:\n    - qps: x\n"
    found = read_configuration(written(tmp_path, text), KNOWN)["EventRateLimit"]
    with pytest.raises(SettingsError, match=r"admission.yaml:9: Expected `int`, got `str`"):
        found.read("Limits", ("v1",), Limits)


PODS = "apiVersion: pod-security.admission.config.k8s.io/v1\n    kind: PodSecurityConfiguration\n"


def configured(folder: Path, text: str) -> Document:
    plugins = f"- name: PodSecurity\n  configuration:\n    {PODS}    {text}\n"
    return read_configuration(written(folder, plugins), ("PodSecurity",))["PodSecurity"]


def test_pod_security_defaults_apply_to_namespaces_without_labels(tmp_path: Path) -> None:
    text = "defaults: {enforce: baseline, warn: restricted, warn-version: v1.30}\n    exemptions: {namespaces: [infra]}"
    read = read_pod_security(configured(tmp_path, text))
    assert [str(each) for each in read.defaults] == ["baseline:latest", "privileged:latest", "restricted:v1.30"]
    assert read.namespaces == {"infra"}
    assert read_pod_security(None).defaults.is_privileged


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("defaults: {enforce: odd}", r"admission.yaml:8: enforce must be one of privileged, baseline, restricted"),
        ("defaults: {warn-version: odd}", r'admission.yaml:8: warn-version must be "latest" or "v1.x"'),
        ("defaults: {odd: baseline}", r"admission.yaml:8: there is no mode 'odd'"),
        ("exemptions: {users: [a]}", r"admission.yaml:8: .*unknown field `users`"),
    ],
)
def test_a_broken_pod_security_configuration_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(SettingsError, match=problem):
        read_pod_security(configured(tmp_path, text))


@pytest.mark.parametrize("name", ["EventRateLimit", "ImagePolicyWebhook"])
def test_a_plugin_without_its_dependencies_is_refused(name: str) -> None:
    with pytest.raises(SettingsError, match=rf"^{name} has no .*: --admission-control-config-file must "):
        new_chain(KINDS, FakeClock(), AdmissionSettings(enable_plugins=(name,)), AlwaysAllow())


def test_the_page_lists_every_plugin_in_its_table() -> None:
    page = (Path(__file__).parents[2] / "docs" / "admission.md").read_text(encoding="utf-8")
    (row,) = [line for line in page.splitlines() if line.startswith("| NamespaceLifecycle,")]
    default, optional = ({name.strip() for name in cell.split(",")} for cell in row.strip("| ").split(" | "))
    made = [entry for entry in PLUGINS if entry.make is not None]
    assert default == {entry.name for entry in made if entry.is_default}
    assert optional == {entry.name for entry in made if not entry.is_default}
    for entry in PLUGINS:
        assert entry.name in page or entry.name.replace("Policy", "Policies") in page


def test_toleration_seconds_of_failing_nodes_are_configurable() -> None:
    settings = AdmissionSettings(default_not_ready_toleration_seconds=5, default_unreachable_toleration_seconds=0)
    plugins = {plugin.name: plugin for plugin in new_chain(KINDS, FakeClock(), settings, AlwaysAllow()).plugins}
    made = Write("v1/pods", {"spec": {"containers": []}}).admit(plugins["DefaultTolerationSeconds"])
    assert [each["tolerationSeconds"] for each in made["spec"]["tolerations"]] == [5, 0]

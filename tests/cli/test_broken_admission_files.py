"""Tests with broken admission configuration files: `ctrlmgr serve` exits at once, with the file, the line and the
error.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from ctrlmgr import cli
from tests.cli.conftest import Run

LIMITS = "apiVersion: eventratelimit.admission.k8s.io/v1alpha1\nkind: Configuration\n"
SECURITY = "apiVersion: pod-security.admission.config.k8s.io/v1\nkind: PodSecurityConfiguration\n"
QUOTAS = "apiVersion: apiserver.config.k8s.io/v1\nkind: ResourceQuotaConfiguration\n"
TOLERATIONS = "apiVersion: podtolerationrestriction.admission.k8s.io/v1alpha1\nkind: Configuration\n"
HOOKS = "apiVersion: apiserver.config.k8s.io/v1\nkind: WebhookAdmissionConfiguration\n"


@pytest.mark.parametrize(
    ("plugin", "text", "told"),
    [
        ("EventRateLimit", f"{LIMITS}limits:\n- {{type: Server, qps: 0, burst: 1}}\n", ":4: qps must be at least 1"),
        ("EventRateLimit", f"{LIMITS}limits: [\n", ":4: not valid YAML"),
        ("ImagePolicyWebhook", "imagePolicy:\n  allowTTL: 5000\n", ":2: allowTTL must be between 1 and 1800"),
        ("ImagePolicyWebhook", "imagePolicy:\n  kubeConfigFile: gone\n", ":2: kubeConfigFile must name a file"),
        ("PodNodeSelector", "podNodeSelectorPluginConfig:\n  a: b=c=d\n", ":2: invalid selector: [b=c=d]"),
        ("PodSecurity", f"{SECURITY}defaults:\n  enforce: odd\n", ":4: enforce must be one of"),
        ("PodTolerationRestriction", f"{TOLERATIONS}odd: 1\n", ":3: Object contains unknown field `odd`"),
        ("ResourceQuota", f"{QUOTAS}limitedResources:\n- resource: 1\n", ":4: Expected `str`, got `int`"),
        ("MutatingAdmissionWebhook", f"{HOOKS}kubeConfigFile: gone\n", ":3: kubeConfigFile must name a file"),
        ("ValidatingAdmissionWebhook", "kind: Odd\n", ":1: kind must be WebhookAdmissionConfiguration"),
    ],
)
def test_serve_exits_with_the_line(plugin: str, text: str, told: str, tmp_path: Path, run: Run) -> None:
    (tmp_path / "plugin.yaml").write_text(text, encoding="utf-8")
    file = tmp_path / "admission.yaml"
    named = f"plugins:\n- name: {plugin}\n  path: plugin.yaml\n"
    file.write_text(f"apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\n{named}", encoding="utf-8")
    ended = serve(run, "--enable-admission-plugins", plugin, "--admission-control-config-file", str(file))
    assert ended.startswith(f"error: {tmp_path}/plugin.yaml{told}")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("plugins:\n- name: Odd\n", ":1: kind must be AdmissionConfiguration"),
        (
            "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n- name: Odd\n",
            ":4: there is no admission plugin 'Odd'",
        ),
        ("a: [", ":1: not valid YAML"),
    ],
)
def test_a_missing_file_is_named(text: str, told: str, tmp_path: Path, run: Run) -> None:
    file = tmp_path / "admission.yaml"
    file.write_text(text, encoding="utf-8")
    assert serve(run, "--admission-control-config-file", str(file)).startswith(f"error: {file}{told}")


def serve(run: Run, *flags: str) -> str:
    """Return the single line that `ctrlmgr serve` prints before it exits."""
    finished = run("serve", "--database", "memory:", "--listen", "127.0.0.1:0", *flags)
    assert finished.code == cli.ExitCode.USAGE
    (line,) = finished.err.splitlines()
    return line

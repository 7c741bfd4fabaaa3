"""Tests of the configuration file of kube-controller-manager: its fields have the effect of flags."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ctrlmgr.errors import SettingsError
from ctrlmgr.settings import flags
from ctrlmgr.settings.kubernetes_flags.controller_manager_configuration import FIELDS, read_configuration
from ctrlmgr.settings.kubernetes_flags.table import MEANINGS
from ctrlmgr.settings.kubernetes_flags.upstream_flags import KUBE_CONTROLLER_MANAGER
from tests.generated import OF_THE_COMMAND

HEAD = "apiVersion: kubecontrollermanager.config.k8s.io/v1alpha1\nkind: KubeControllerManagerConfiguration\n"


def written(folder: Path, text: str) -> Path:
    file = folder / "controllers.yaml"
    file.write_text(HEAD + text)
    return file


def test_each_field_has_a_flag_with_a_meaning() -> None:
    assert set(FIELDS.values()) <= {*flags().values(), *MEANINGS, *OF_THE_COMMAND}
    assert len(set(FIELDS.values())) == len(FIELDS)


def test_each_flag_of_a_controller_has_a_field() -> None:
    limits = {flag for flag in KUBE_CONTROLLER_MANAGER if "concurrent" in flag or "autoscaler" in flag}
    assert limits <= set(FIELDS.values())


def test_fields_are_read_as_flags(tmp_path: Path) -> None:
    text = """\
Generic:
  Controllers: ["*", "-job-controller"]
  LeaderElection: {leaderElect: true, leaseDuration: 20s}
HPAController: {HorizontalPodAutoscalerTolerance: 0.25}
DeploymentController: {ConcurrentDeploymentSyncs: 7}
CSRSigningController: {KubeletClientSignerConfiguration: {CertFile: c.pem}}
"""
    assert read_configuration(written(tmp_path, text)) == {
        "--controllers": "*,-job-controller",
        "--leader-elect": "true",
        "--leader-elect-lease-duration": "20s",
        "--horizontal-pod-autoscaler-tolerance": "0.25",
        "--concurrent-deployment-syncs": "7",
        "--cluster-signing-kubelet-client-cert-file": "c.pem",
    }


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("Generic: {Controlers: [a]}", "controllers.yaml:3: the field Generic.Controlers is not supported"),
        ("Generic:\n  LeaderMigration: {leaderName: m}", "controllers.yaml:4: the field Generic.LeaderMigration is"),
        ("JobController: 3", "controllers.yaml:3: the field JobController is not supported"),
    ],
)
def test_other_fields_are_refused(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(SettingsError) as refused:
        read_configuration(written(tmp_path, text))
    assert problem in str(refused.value)


def test_another_kind_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "other.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "Config"}))
    with pytest.raises(SettingsError, match="kind must be KubeControllerManagerConfiguration, not 'Config'"):
        read_configuration(file)

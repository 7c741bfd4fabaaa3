"""Tests of `serve --config`: the file sets settings, and flags override the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from click.testing import CliRunner

from ctrlmgr.cli.options import reader, takes_settings
from ctrlmgr.settings import Loaded, Settings, flags

TEXT = """\
apiVersion: kubecontrollermanager.config.k8s.io/v1alpha1
kind: KubeControllerManagerConfiguration
Generic:
  ClientConnection: {kubeconfig: /etc/kubeconfig, qps: 50}
  LeaderElection: {leaderElect: false, leaseDuration: 20s}
KubeCloudShared: {UseServiceAccountCredentials: true, ClusterName: kubernetes}
"""


def invoked(folder: Path, *arguments: str) -> tuple[Loaded, Settings, dict[str, Any], str]:
    """Run a command with the settings of `serve`; return what it gets, the settings read again, and its output."""
    file = folder / "controllers.yaml"
    file.write_text(TEXT)
    got: list[tuple[Loaded, Settings, dict[str, Any]]] = []

    @click.command()
    @takes_settings(*flags(), translates=True)
    @click.option("--kubeconfig", type=click.Path(path_type=Path))
    @click.option("--use-service-account-credentials", "as_accounts", type=bool)
    def command(loaded: Loaded, **options: Any) -> None:
        got.append((loaded, reader()(), options))

    finished = CliRunner().invoke(command, [f"--config={file}", *arguments], catch_exceptions=False)
    assert finished.exit_code == 0, finished.output
    return *got[0], finished.output


def test_the_file_sets_settings_and_options(tmp_path: Path) -> None:
    loaded, again, options, output = invoked(tmp_path)
    elects = loaded.settings.leader_election
    assert (elects.enabled, elects.lease_duration, loaded.settings.controllers.kube_api_qps) == (False, 20.0, 50.0)
    assert loaded.origins["leader_election.enabled"].endswith("controllers.yaml")
    assert options == {"kubeconfig": Path("/etc/kubeconfig"), "as_accounts": True}
    assert again.leader_election == elects
    assert "warning: --cluster-name has no effect" in output


def test_a_flag_overrides_the_file(tmp_path: Path) -> None:
    given = ["--leader-elect-lease-duration=30s", "--kubeconfig=other", "--use-service-account-credentials=false"]
    loaded, again, options, _ = invoked(tmp_path, *given)
    assert loaded.settings.leader_election.lease_duration == again.leader_election.lease_duration == 30.0
    assert options == {"kubeconfig": Path("other"), "as_accounts": False}

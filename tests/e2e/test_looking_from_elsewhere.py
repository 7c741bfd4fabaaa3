"""Tests of commands that read the log of a real server with its kubeconfig over TLS."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.cli.conftest import Run, run  # noqa: F401  # a fixture
from tests.e2e.serving import Server


def test_a_server_is_queried_with_its_kubeconfig(
    run: Run,  # noqa: F811  # the fixture
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CTRLMGR_DATA_DIR", str(tmp_path / "elsewhere"))
    (tmp_path / "served").mkdir()
    server = Server(tmp_path / "served", "--database", f"sqlite:///{tmp_path}/log.db")
    server.start()
    try:
        namespace = server.new_namespace()
        fields = server.request("GET", f"/api/v1/namespaces/{namespace}/configmaps/kube-root-ca.crt")[1]
        at = fields["metadata"]["resourceVersion"]
        there = ("--server", server.url, "--kubeconfig", str(server.kubeconfig))
        here = ("--database", f"sqlite:///{tmp_path}/log.db")
        for command in (
            ("why", "configmap/kube-root-ca.crt", "-n", namespace, "--at", at, "-o", "json"),
            ("get", "pods,configmaps,secrets", "-A", "--at", at, "-o", "json"),
            ("sql", "-c", f"SELECT * FROM timeline WHERE revision <= {at} ORDER BY revision"),
        ):
            told = run(*command, *there)
            assert (told.code, told.out) == (0, run(*command, *here).out)
        config = yaml.safe_load(server.kubeconfig.read_text())
        del config["clusters"][0]["cluster"]["certificate-authority-data"]
        (tmp_path / "distrusting").write_text(yaml.safe_dump(config))
        told = run("events", *there[:3], str(tmp_path / "distrusting"))
        assert (told.code != 0, told.out, told.err.count("\n")) == (True, "", 1)
        assert "did not sign" in told.err
    finally:
        server.close()

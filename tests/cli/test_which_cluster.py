"""Tests of the log that commands select: the log of kubectl's cluster if this cluster is a ctrlmgr server, or the
database in the options.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
import yaml

from ctrlmgr import threads
from ctrlmgr.server.admin_kubeconfig import write_kubeconfig
from tests.cli.conftest import Run
from tests.ui.site import TOKEN, page

NOBODY = "http://127.0.0.1:1"


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("KUBECONFIG", "CTRLMGR_DATA_DIR", "CTRLMGR_DATABASE_URL", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)


def stopped(tmp_path: Path, database: str) -> Path:
    """Return the kubeconfig of a stopped server whose log is `database`."""
    folder = tmp_path / "data"
    folder.mkdir(exist_ok=True)
    noted = {"data-dir": str(folder), "database": database}
    write_kubeconfig(folder / "kubeconfig", server=NOBODY, authority=b"", token="secret", noted=noted)
    return folder / "kubeconfig"


def pointing(tmp_path: Path, server: str, token: str = TOKEN) -> Path:
    """Return a kubeconfig in the form in which a user writes it by hand."""
    fields = {
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": {"token": token}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    file = tmp_path / "by-hand"
    file.write_text(yaml.safe_dump(fields))
    return file


@contextmanager
def another_cluster() -> Iterator[str]:
    """Respond to /version like a Kubernetes API server that is not ctrlmgr."""

    class OtherServerHandler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = b'{"gitVersion": "v1.36.0"}' if self.path == "/version" else b"404"
            self.send_response(200 if self.path == "/version" else 404)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    server = HTTPServer(("127.0.0.1", 0), OtherServerHandler)
    serving = threads.start("another cluster", server.serve_forever)
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        serving.join()
        server.server_close()


def test_the_kubeconfig_of_serve_leads_to_its_log_after_the_server_stops(
    run: Run, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = run("get", "configmaps", "-A", "-o", "name", "--database", database).out
    kubeconfig = stopped(tmp_path, database)
    assert wanted
    assert run("get", "configmaps", "-A", "-o", "name", "--kubeconfig", str(kubeconfig)).out == wanted
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
    for command in (["get", "configmaps", "-A", "-o", "name"], ["events"], ["history", "configmap/a"], ["why", "cm/b"]):
        assert run(*command).out == run(*command, "--database", database).out != ""


def test_the_default_kubeconfig_is_used_if_serve_wrote_its_entry(run: Run, database: str, tmp_path: Path) -> None:
    (tmp_path / "home" / ".kube").mkdir(parents=True)
    default = tmp_path / "home" / ".kube" / "config"
    default.write_text(pointing(tmp_path, NOBODY).read_text())
    other = run("events")
    assert (other.code, "there is no" in other.err) == (3, True), "no other cluster is asked"
    default.write_text(stopped(tmp_path, database).read_text())
    assert run("events").out == run("events", "--database", database).out


def test_a_server_without_local_files_is_queried(
    run: Run, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with page(database) as served:
        wanted = run("events", "-o", "jsonl", "--database", database).out
        monkeypatch.setenv("KUBECONFIG", str(pointing(tmp_path, served.url)))
        assert run("events", "-o", "jsonl").out == wanted
        missing = run("get", "pod/none")
        assert f'pods "none" not found in {served.url} (6 revisions); is this the right cluster?' in missing.err
        noted = {"data-dir": str(tmp_path / "data"), "database": f"sqlite:///{tmp_path / 'other.db'}"}
        (tmp_path / "other.db").write_bytes(b"another machine's name")
        write_kubeconfig(tmp_path / "copied", server=served.url, authority=b"", token=TOKEN, noted=noted)
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "copied"))
        assert run("events", "-o", "jsonl").out == wanted


def test_an_explicit_database_overrides_the_kubeconfig(
    run: Run, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(pointing(tmp_path, NOBODY)))
    assert run("events", "--database", database).code == 0
    assert run("events", "--data-dir", str(tmp_path)).code == 3
    monkeypatch.setenv("CTRLMGR_DATABASE_URL", database)
    assert run("events").code == 0


def test_another_cluster_is_not_queried_and_is_reported(
    run: Run, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    states = tmp_path / "states"
    (states / "ctrlmgr").mkdir(parents=True)
    Path(database.removeprefix("sqlite:///")).rename(states / "ctrlmgr" / "ctrlmgr.db")
    monkeypatch.setenv("XDG_STATE_HOME", str(states))
    with another_cluster() as url:
        monkeypatch.setenv("KUBECONFIG", str(pointing(tmp_path, url)))
        done = run("get", "configmaps", "-A", "-o", "name")
        note = f"note: the cluster of $KUBECONFIG ({url}) is not a ctrlmgr server; "
        note += f"using the data directory {states}/ctrlmgr\n"
        assert (done.code, done.err) == (0, note)
        assert "configmap/a" in done.out


@pytest.mark.parametrize("command", [("get", "pods"), ("failures",), ("ui", "--no-open")])
def test_a_server_that_does_not_answer_is_named_with_advice(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(pointing(tmp_path, NOBODY)))
    done = run(*command)
    assert (done.code, done.err.count("\n")) == (1, 1)
    assert f"$KUBECONFIG: {NOBODY}" in done.err
    assert "--database or --data-dir names a database" in done.err
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "gone"))
    assert f"$KUBECONFIG: there is no kubeconfig at {tmp_path / 'gone'}" in run(*command).err


def test_a_not_found_error_names_the_log(run: Run, database: str) -> None:
    log = f"{database} (6 revisions)"
    for command in (["get", "cm/none"], ["why", "cm/none"], ["history", "cm/none"], ["get", "widgets"]):
        done = run(*command, "--database", database)
        assert f" in {log}; is this the right cluster?\n" in done.err, command
    assert run("get", "pods", "--database", database).err == f"No resources found in default namespace in {log}\n"
    assert run("events", "--name", "x", "--database", database).err == f"no matching events in {log}\n"
    assert run("failures", "--database", database).err == f"no failures in {log}\n"

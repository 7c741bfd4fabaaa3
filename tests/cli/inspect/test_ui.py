"""Tests of `ctrlmgr ui`: the link that a user with a kubeconfig gets."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from ctrlmgr.cli import ExitCode
from tests.cli.conftest import Run


@pytest.fixture
def port() -> Iterator[int]:
    """Return a port on which a process listens."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


def kubeconfig(folder: Path, user: dict[str, str], port: int) -> Path:
    fields = {
        "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{port}/"}}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    file = folder / "kubeconfig"
    file.write_text(yaml.safe_dump(fields))
    return file


@pytest.mark.parametrize(
    ("user", "link"),
    [
        ({"token": "a token/with+signs"}, "/ui/#token=a%20token%2Fwith%2Bsigns\n"),
        ({}, "/ui/\n"),
        ({"username": "alice", "password": "secret"}, "/ui/\n"),
    ],
)
def test_ui_prints_a_link(run: Run, tmp_path: Path, user: dict[str, str], link: str, port: int) -> None:
    file = kubeconfig(tmp_path, user, port)
    finished = run("ui", "--kubeconfig", str(file), "--no-open")
    assert (finished.code, finished.out) == (ExitCode.OK, f"http://127.0.0.1:{port}{link}")
    assert f"kubectl --kubeconfig {file} proxy" in finished.err


def test_ui_opens_a_browser_on_a_desktop(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, port: int) -> None:
    opened: list[str] = []
    pages: list[str] = []

    def open_it(link: str) -> bool:
        opened.append(link)
        if link.startswith("file://"):
            file = Path(link.removeprefix("file://"))
            assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
            pages.append(file.read_text())
        return True

    monkeypatch.setattr("webbrowser.open", open_it)
    monkeypatch.setattr("ctrlmgr.cli.inspect.ui.SHOWN_FOR", 0.0)
    file = kubeconfig(tmp_path, {"token": "t"}, port)
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    assert "there is no display" in run("ui", "--kubeconfig", str(file), "--open").err
    assert not opened
    monkeypatch.setenv("DISPLAY", ":0")
    assert run("ui", "--kubeconfig", str(file), "--open").code == ExitCode.OK
    assert "token" not in opened[0], "other users see what a browser is started with"
    assert f'content="0; url=http://127.0.0.1:{port}/ui/#token=t"' in pages[0]
    assert not Path(opened[0].removeprefix("file://")).exists(), "it is gone again"
    kubeconfig(tmp_path, {}, port)
    assert run("ui", "--kubeconfig", str(file), "--open").code == ExitCode.OK
    assert opened[1:] == [f"http://127.0.0.1:{port}/ui/"]


def test_ui_without_a_server_prints_advice(run: Run, tmp_path: Path) -> None:
    finished = run("ui", "--data-dir", str(tmp_path), "--no-open")
    assert finished.code == ExitCode.USAGE
    assert "start `ctrlmgr serve`" in finished.err


def test_ui_reports_a_server_that_does_not_answer(run: Run, tmp_path: Path, port: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        gone = listening.getsockname()[1]
    finished = run("ui", "--kubeconfig", str(kubeconfig(tmp_path, {}, gone)), "--no-open")
    assert (finished.code, finished.out) == (ExitCode.FAILED, "")
    said = f"error: no server answers at http://127.0.0.1:{gone} (connection refused): is `ctrlmgr serve` running?"
    assert finished.err.startswith(said)

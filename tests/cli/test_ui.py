"""`ctrlmgr ui`: a link for who has a kubeconfig."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from ctrlmgr.cli import ExitCode
from tests.cli.conftest import Run


def kubeconfig(folder: Path, user: dict[str, str]) -> Path:
    fields = {
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:6443/"}}],
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
        ({"token": "a token/with+signs"}, "http://127.0.0.1:6443/ui/#token=a%20token%2Fwith%2Bsigns\n"),
        ({}, "http://127.0.0.1:6443/ui/\n"),
        ({"username": "alice", "password": "secret"}, "http://127.0.0.1:6443/ui/\n"),
    ],
)
def test_it_prints_a_link(run: Run, tmp_path: Path, user: dict[str, str], link: str) -> None:
    file = kubeconfig(tmp_path, user)
    finished = run("ui", "--kubeconfig", str(file), "--no-open")
    assert (finished.code, finished.out) == (ExitCode.OK, link)
    assert f"kubectl --kubeconfig {file} proxy" in finished.err


def test_it_opens_a_browser_where_there_is_a_screen(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    monkeypatch.setattr("ctrlmgr.cli.looking.ui.SHOWN_FOR", 0.0)
    file = kubeconfig(tmp_path, {"token": "t"})
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    assert "no screen" in run("ui", "--kubeconfig", str(file), "--open").err
    assert not opened
    monkeypatch.setenv("DISPLAY", ":0")
    assert run("ui", "--kubeconfig", str(file), "--open").code == ExitCode.OK
    assert "token" not in opened[0], "other users see what a browser is started with"
    assert 'content="0; url=http://127.0.0.1:6443/ui/#token=t"' in pages[0]
    assert not Path(opened[0].removeprefix("file://")).exists(), "it is gone again"
    kubeconfig(tmp_path, {})
    assert run("ui", "--kubeconfig", str(file), "--open").code == ExitCode.OK
    assert opened[1:] == ["http://127.0.0.1:6443/ui/"]


def test_without_a_server_it_says_what_to_do(run: Run, tmp_path: Path) -> None:
    finished = run("ui", "--data-dir", str(tmp_path), "--no-open")
    assert finished.code == ExitCode.USAGE
    assert "start `ctrlmgr serve`" in finished.err

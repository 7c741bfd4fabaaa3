"""Tests of `ctrlmgr exec`, with the environment of a CI job."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import click
import pytest
import yaml

from ctrlmgr import cli
from tests.cli.signals import as_usual

ROOT = Path(__file__).parents[2]
CTRLMGR = (sys.executable, "-m", "ctrlmgr")
APP = """from ctrlmgr import App, Kind
class Shop(Kind, api_version="example.com/v1"): ...
app = App("shop", kinds=[Shop])
"""
SAY = "import os, sys; print(os.environ['KUBECONFIG'], flush=True);"


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Return the environment of a job: an empty TMPDIR, and another cluster in KUBECONFIG and in CTRLMGR_…."""
    (tmp_path / "tmp").mkdir()
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("CTRLMGR_")}
    others = {"CTRLMGR_DATABASE_URL": "sqlite:////nowhere/log.db", "KUBECONFIG": "/nowhere/kubeconfig"}
    return {**inherited, **others, "PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path / "tmp")}


def run(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    folder = Path(environment["TMPDIR"]).parent
    command = [*CTRLMGR, "exec", *arguments]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=120
    )


def left(environment: dict[str, str]) -> list[Path]:
    return [*Path(environment["TMPDIR"]).iterdir()]


def test_exec_passes_on_the_exit_code_of_its_command(environment: dict[str, str]) -> None:
    folder = Path(environment["TMPDIR"]).parent
    (folder / "shop.py").write_text(APP)
    asks = f"{sys.executable} -m ctrlmgr get"
    looks = f"{asks} nodes -o name; {asks} customresourcedefinitions -o name; pwd; exit 7"
    finished = run(environment, "--nodes", "2", "--app", "shop.py", "--", "sh", "-c", looks)
    assert finished.returncode == 7, finished.stderr
    nodes, definition = ["node/node-1", "node/node-2"], "shops.example.com"
    assert finished.stdout.splitlines() == [
        *nodes,
        f"customresourcedefinition.apiextensions.k8s.io/{definition}",
        str(folder),
    ]
    assert not left(environment)


def test_the_workflows_of_the_page_call_exec_and_keep_its_log(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "ci.md").read_text()
    blocks = re.findall(r"^```yaml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert [bool(yaml.safe_load(block)["tests" if "script" in block else "jobs"]) for block in blocks] == [True, True]
    for block in blocks:
        (command,) = re.findall(r"ctrlmgr (exec .*)", block)
        name, *arguments = command.split()
        declared = cli.ctrlmgr.get_command(click.Context(cli.ctrlmgr), name)
        assert declared is not None
        given = declared.make_context(name, arguments).params
        assert (given["keep"], given["command"]) == (True, ("pytest", "-q"))
        (pattern,) = re.findall(r"(ctrlmgr-exec-\S+)", block)
        assert fnmatch("ctrlmgr-exec-1a2b/ctrlmgr.db", pattern)


def test_a_failed_run_is_kept_and_the_printed_command_inspects_it(environment: dict[str, str]) -> None:
    waits = f"until {sys.executable} -m ctrlmgr get service kubernetes; do :; done; exit 5"
    finished = run(environment, "--keep", "--", "sh", "-c", waits)
    assert finished.returncode == 5
    [folder] = left(environment)
    printed = re.findall(r"ctrlmgr ((?:events|get) .*)", finished.stderr)
    assert len(printed) == 2
    for line in printed:
        arguments = [*CTRLMGR, *line.split()]
        clean = {name: value for name, value in environment.items() if not name.startswith("CTRLMGR_")}
        assert "kubernetes" in subprocess.run(arguments, env=clean, capture_output=True, text=True, check=True).stdout
    assert str(folder) in finished.stderr


def test_a_successful_run_is_not_kept(environment: dict[str, str]) -> None:
    assert run(environment, "--keep", "--", "true").returncode == 0
    assert not left(environment)


def test_usage_errors_are_one_line_and_leave_no_files(environment: dict[str, str]) -> None:
    unknown = run(environment, "--", "no-such-command")
    assert (unknown.returncode, unknown.stderr) == (127, "error: no-such-command: command not found\n")
    app = run(environment, "--app", "nowhere:app", "--", "true")
    assert (app.returncode, app.stderr) == (2, "error: --app nowhere:app: there is no module nowhere\n")
    assert run(environment).returncode == 2
    assert not left(environment)


@pytest.fixture
def waiting(environment: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    """Run a command in the background; the command ends at the end of its input, or when it receives a signal."""
    command = [*CTRLMGR, "exec", "--", sys.executable, "-c", f"{SAY} sys.stdin.read()"]
    with as_usual(signal.SIGTERM), as_usual(signal.SIGINT):
        process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
    yield process
    process.kill()
    process.communicate()


def test_a_signal_reaches_the_command_and_stops_the_server(
    waiting: subprocess.Popen[str], environment: dict[str, str]
) -> None:
    assert waiting.stdout
    kubeconfig = Path(waiting.stdout.readline().strip())
    assert kubeconfig.parent in left(environment)
    waiting.send_signal(signal.SIGTERM)
    assert waiting.wait(60) == 128 + signal.SIGTERM
    assert not left(environment)

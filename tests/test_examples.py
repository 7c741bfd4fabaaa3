from __future__ import annotations

import configparser
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from ctrlmgr import cli

EXAMPLES = Path(__file__).parents[1] / "examples"


def test_a_users_controller_shows_all_reasons_of_its_write(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLES / "limits_controller.py"), run_name="__main__")
    assert capsys.readouterr().out.splitlines() == [
        "ADDED    configmaps default/limits because of revisions [1]",
        "ADDED    configmaps shop/limits because of revisions [3, 4]",
    ]


def test_scheduler_plugins_of_an_app_choose_the_node(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(EXAMPLES / "scheduler_plugins.py"), run_name="__main__")
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["red: node-2", "blue: node-1"]
    refused = "1 node(s) ran pods of namespace blue, 1 node(s) ran pods of namespace red."
    assert lines[2].startswith(f"green: 0/2 nodes are available: {refused}")


def test_the_page_of_the_scheduler_shows_the_example() -> None:
    page = (EXAMPLES.parent / "docs" / "scheduler.md").read_text()
    (shown,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert shown in (EXAMPLES / "scheduler_plugins.py").read_text()


def test_every_example_runs() -> None:
    # tests/e2e runs `metrics_server.py`, and tests/serve/log_keys `kms.py`. `shop.py` runs its scenario in
    # tests/framework and tests/serve, and `website.py` its tests in tests/framework.
    names = [path.name for path in sorted(EXAMPLES.glob("[!_]*.py"))]
    assert names == [
        "kms.py",
        "limits_controller.py",
        "metrics_server.py",
        "scheduler_plugins.py",
        "shop.py",
        "website.py",
    ]


@pytest.mark.parametrize(
    ("file", "language"), [("systemd/ctrlmgr.service", "ini"), ("container/Containerfile", "dockerfile")]
)
def test_the_documentation_shows_the_example(file: str, language: str) -> None:
    page = (EXAMPLES.parent / "docs" / "high-availability.md").read_text()
    assert re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL) == [(EXAMPLES / file).read_text()]


def test_the_example_unit_is_valid(tmp_path: Path) -> None:
    text = (EXAMPLES / "systemd" / "ctrlmgr.service").read_text()
    unit = configparser.ConfigParser(interpolation=None)
    unit.optionxform = str  # type: ignore[assignment, method-assign]  # keys as they are written, says its documentation
    unit.read_string(text)
    program, command, *arguments = shlex.split(unit["Service"]["ExecStart"])
    with cli.ctrlmgr.make_context("ctrlmgr", [command, *arguments], resilient_parsing=True) as context:
        known = cli.ctrlmgr.get_command(context, command)
        assert known is not None
        assert not set(arguments[::2]) - {option for parameter in known.params for option in parameter.opts}
    assert unit["Service"]["Type"] == "notify"
    if analyze := shutil.which("systemd-analyze"):
        file = tmp_path / "ctrlmgr.service"
        file.write_text(text.replace(program, sys.executable).replace("User=ctrlmgr", "User=root"))
        told = subprocess.run([analyze, "verify", file], capture_output=True, text=True, check=False).stderr
        assert "ctrlmgr" not in told


def test_the_unit_is_hardened() -> None:
    text = (EXAMPLES / "systemd" / "ctrlmgr.service").read_text()
    said = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    assert (said["UMask"], said["StateDirectoryMode"], said["User"]) == ("0077", "0700", "ctrlmgr")
    assert said["CapabilityBoundingSet"] == said["AmbientCapabilities"] == ""
    assert said["SystemCallFilter"] == "@system-service"
    assert (said["NoNewPrivileges"], said["ProtectSystem"]) == ("yes", "strict")


def test_the_image_has_pinned_dependencies() -> None:
    lines = (EXAMPLES / "container" / "Containerfile").read_text().splitlines()
    base = next(line for line in lines if line.startswith("ARG BASE="))
    assert re.fullmatch(r"ARG BASE=\S+:\d+\.\d+\.\d+-\S+", base), "a release, not whatever is newest"
    assert any("--require-hashes --requirement /src/requirements.lock" in line for line in lines)
    assert any("--mode 0700" in line for line in lines)
    assert "USER ctrlmgr" in lines
    lock = (EXAMPLES.parent / "requirements.lock").read_text()
    pinned = re.findall(r"^([a-z0-9-]+)(\[\w+\])?==[^\\\n]+\\\n    --hash=sha256:", lock, re.MULTILINE)
    named = re.findall(r"^([a-z0-9-]+)(\[\w+\])?[=><]", lock, re.MULTILINE)
    assert {name for name, _ in named} == {name for name, _ in pinned} >= {"aiohttp", "cryptography", "hatchling"}


def test_patroni_trusts_no_local_user() -> None:
    rules = yaml.safe_load((EXAMPLES / "patroni" / "patroni.yml").read_text())["bootstrap"]["pg_hba"]
    methods = {rule.split()[-1] for rule in rules}
    assert methods == {"peer", "scram-sha-256"}
    assert [rule for rule in rules if rule.endswith("peer")] == ["local all postgres peer"]

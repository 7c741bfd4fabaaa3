"""Tests of `ctrlmgr new` and `ctrlmgr crd`."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from ctrlmgr import cli, definition_of
from ctrlmgr.errors import SettingsError
from ctrlmgr.framework.project import write
from ctrlmgr.testing.served import ServerProcess
from examples.shop import Shop

EXAMPLES = Path(__file__).parents[3] / "examples"


def test_the_tests_of_a_new_project_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "project"
    assert cli.run(["new", "corner-shop", "--group", "shops.example.org", "--directory", str(folder)]) == 0
    assert "corner_shop/operator.py" in capsys.readouterr().out
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=100)
    assert "5 passed" in done.stdout, done.stdout + done.stderr
    assert cli.run(["new", "corner-shop", "--directory", str(folder)]) == 2
    assert "README.md exists already" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "group", "message"),
    [
        ("Shop", "example.com", "'Shop' is not a valid name of a project"),
        ("class", "example.com", "'class' is not a valid name of a project"),
        ("json", "example.com", "a package called json exists already"),
        ("shop", "shop", "not a group for custom kinds"),
        ("shop", "batch.k8s.io", "not a group for custom kinds"),
    ],
)
def test_invalid_project_names_are_refused(tmp_path: Path, name: str, group: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        write(tmp_path / "x", name, group)
    assert not (tmp_path / "x").exists()


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Make the modules in `examples` importable."""
    monkeypatch.syspath_prepend(EXAMPLES)
    yield
    sys.modules.pop("shop", None)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("place", ["shop:Shop", "shop:app"])
def test_definitions_are_printed(place: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["crd", place]) == 0
    assert yaml.safe_load(capsys.readouterr().out) == definition_of(Shop)
    assert cli.run(["crd", place, "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == definition_of(Shop)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("shop:ShopSpec", "crd shop:ShopSpec is ShopSpec, not a ctrlmgr.Kind or a ctrlmgr.App"),
        ("shop:ConfigMap", "crd shop:ConfigMap has no custom kind to define"),
        ("limits_controller:app", "crd limits_controller:app has no custom kind to define"),
        ("shop:Store", "crd shop:Store: module shop has no 'Store'; it has app"),
    ],
)
def test_a_module_without_definitions_is_reported_in_one_line(
    place: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["crd", place]) == 2
    assert capsys.readouterr().err.strip() == f"error: {message}"


def test_definitions_are_applied(
    start_ctrlmgr: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    server: ServerProcess = start_ctrlmgr("--database", "memory:")
    text = (EXAMPLES / "shop.py").read_text()
    (tmp_path / "applied_shop.py").write_text(text)
    (tmp_path / "changed_shop.py").write_text(text.replace("currency: Anno", "since: int = 0\n    currency: Anno"))
    (tmp_path / "other_shop.py").write_text(text.replace("dict[str, int]", "dict[str, str]"))
    monkeypatch.syspath_prepend(tmp_path)
    config = ["--apply", "--kubeconfig", str(server.kubeconfig)]
    for module, told in (("applied", "applied"), ("applied", "unchanged"), ("changed", "applied")):
        assert cli.run(["crd", f"{module}_shop:app", *config]) == 0
        assert capsys.readouterr().out == f"shops.example.com {told}\n"
    assert cli.run(["crd", "other_shop:app", *config]) == 2
    assert ".spec.prices{} is of type integer, not string" in capsys.readouterr().err

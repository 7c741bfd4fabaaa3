"""Tests that a new controller and a new kind, each in one file, appear in all lists of built-in
controllers and kinds.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from ctrlmgr.controllers import registry
from ctrlmgr.testing.served import ServerProcess
from tests import generated
from tests.recording.samples import SMALL
from tests.toys import widget
from tests.toys.greeter import DESCRIPTOR

ROOT = Path(__file__).parents[1]
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


def toys(*arguments: str) -> str:
    """Return the output of `ctrlmgr` with the toy controller."""
    command = [sys.executable, "-m", "tests.toys", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False, timeout=120)
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


def ask(server: ServerProcess, path: str, body: Any = None, accept: str = "application/json") -> Any:
    data = None if body is None else json.dumps(body).encode()
    headers = {"Authorization": f"Bearer {server.token}", "Content-Type": "application/json", "Accept": accept}
    with urlopen(Request(f"{server.url}{path}", data, headers), timeout=30, context=server.trust) as answer:
        text = answer.read().decode()
    return json.loads(text) if text.startswith("{") else text


def test_help_and_settings_have_the_options_of_a_toy_controller() -> None:
    assert "--greeting TEXT" in toys("serve", "--help-all")
    assert json.loads(toys("settings", "--greeting", "hi", "-o", "json"))["controllers.greeting"] == {
        "value": "hi",
        "from": "--greeting",
    }


@pytest.fixture
def registered() -> Iterator[None]:
    registry.ALL.append(DESCRIPTOR)
    yield
    registry.ALL.remove(DESCRIPTOR)


@pytest.mark.usefixtures("registered")
def test_the_tables_of_the_documentation_would_have_a_toy_controller() -> None:
    assert "| `greeter-controller` | `greeter` | a greeting in every namespace |" in generated.controllers()
    assert [each.name for each in registry.enabled(["greeter"]).descriptors] == ["greeter-controller"]


def test_a_replay_runs_a_toy_controller() -> None:
    without = json.loads(toys("replay", str(SMALL), "-o", "json", "--controllers", "*,-greeter", "--no-progress"))
    beside = json.loads(toys("replay", str(SMALL), "-o", "json", "--no-progress"))
    assert beside["writes"] > without["writes"]
    assert beside["divergences"] == []


def test_a_toy_controller_and_a_toy_kind_are_served(tmp_path: Path) -> None:
    flags = ("--database", "memory:", "--greeting", "welcome")
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    with ServerProcess(tmp_path, *flags, program="tests.toys", PYTHONPATH=path) as server:
        assert "[+]controller/greeter-controller ok" in ask(server, "/readyz?verbose")
        watching = "/api/v1/namespaces/default/configmaps?watch=true&fieldSelector=metadata.name%3Dgreeting"
        headers = {"Authorization": f"Bearer {server.token}"}
        with urlopen(Request(server.url + watching, headers=headers), timeout=30, context=server.trust) as changes:
            assert json.loads(changes.readline())["object"]["data"] == {"text": "welcome"}
        definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        ask(server, definitions, widget.DEFINITION)
        established = f"{definitions}?watch=true&fieldSelector=metadata.name%3Dwidgets.toys.example.com"
        with urlopen(Request(server.url + established, headers=headers), timeout=30, context=server.trust) as changes:
            while not any(
                each["type"] == "Established" and each["status"] == "True"
                for each in json.loads(changes.readline())["object"].get("status", {}).get("conditions") or ()
            ):
                pass
        assert [each["name"] for each in ask(server, "/apis/toys.example.com/v1")["resources"]] == ["widgets"]
        widgets = "/apis/toys.example.com/v1/namespaces/default/widgets"
        made = ask(server, widgets, {"apiVersion": "toys.example.com/v1", "kind": "Widget", "metadata": {"name": "a"}})
        assert "spec" not in made
        table = ask(server, widgets, accept=TABLE)
        assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Size"]
        assert [row["cells"][0] for row in table["rows"]] == ["a"]

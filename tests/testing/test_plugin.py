"""Tests of the pytest plugin in projects of users, which test their own controllers."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from tests.recording.samples import SMALL, Script, made_by_hand, pod, service

pytest_plugins = "pytester"

PLUGIN = "ctrlmgr.testing.plugin"
INSTALLED = any(each.value == PLUGIN for each in entry_points(group="pytest11"))
"""Whether pytest loads the plugin automatically; it does not if the environment was installed before the plugin
existed.
"""

PAGE = Path(__file__).parents[2] / "docs" / "testing.md"


@pytest.fixture
def run(pytester: pytest.Pytester) -> pytest.Pytester:
    """A folder for pytest's tests, which also contains a recording."""
    shutil.copy(SMALL, pytester.path / "incident.jsonl.gz")
    return pytester


def outcome(run: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    plugin = () if INSTALLED else ("-p", PLUGIN)
    return run.runpytest_subprocess("-q", "-p", "no:cacheprovider", *plugin, *arguments)


def diverging(folder: Path) -> Path:
    script = Script().event("ADDED", service(selector={"app": "s"}))
    return script.event("ADDED", made_by_hand("203.0.113.7")).checkpoint("first").write(folder)


def test_a_recording_is_a_test_in_three_lines(run: pytest.Pytester) -> None:
    run.makepyfile("""
        def test_incident(replay):
            report = replay("incident.jsonl.gz", controllers=["endpoints-controller"])
            assert not report.divergences
            assert report.events == 421
    """)
    result = outcome(run)
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("*reconciled*")


def test_the_log_of_a_replay_can_be_inspected(run: pytest.Pytester) -> None:
    run.makepyfile("""
        from ctrlmgr.api.resource import ENDPOINTS
        import pytest
        from ctrlmgr.errors import SettingsError

        def test_log(replay, tmp_path):
            with pytest.raises(RuntimeError):
                replay.log
            report = replay("incident.jsonl.gz", database=f"sqlite:///{tmp_path}/log.db")
            assert replay.log.head().revision == report.revision
            assert replay.get("endpoints", "kubernetes", "default").resource == ENDPOINTS
            assert replay("incident.jsonl.gz", controllers={}).writes == 0
            with pytest.raises(SettingsError, match="no controller 'nonsense'; there are: .*, endpoints-controller"):
                replay("incident.jsonl.gz", controllers=["nonsense"])
    """)
    outcome(run).assert_outcomes(passed=1)


def recorded_ports(folder: Path, port: str) -> None:
    """Write a recording with a Service that has port 80, and with the ConfigMap that an operator wrote for this
    Service.
    """
    entry = {"manager": "ports-operator", "operation": "Update", "apiVersion": "v1", "fieldsV1": {"f:data": {}}}
    metadata = {"name": "s", "namespace": "shop", "uid": "recorded", "managedFields": [entry]}
    made = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata, "data": {"port": port}}
    script = Script().event("ADDED", service()).event("ADDED", pod("p", "10.0.0.1")).event("ADDED", made)
    script.checkpoint("first").write(folder).rename(folder / "ports.jsonl")


@pytest.mark.slow
def test_the_code_of_the_page_runs(run: pytest.Pytester) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    run.makepyfile(**{f"test_block_{number}": block for number, block in enumerate(blocks)})
    recorded_ports(run.path, "80")
    outcome(run).assert_outcomes(passed=len(blocks))
    assert len(blocks) == 4


def test_a_users_controller_is_compared_with_its_predecessors_writes(run: pytest.Pytester) -> None:
    [block] = [each for each in PAGE.read_text().split("```") if "class Ports" in each]
    run.makepyfile(test_ports=block.removeprefix("python"))
    recorded_ports(run.path, "81")
    result = outcome(run)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*path='.data.port', recorded='81', ours='80'*"])


def test_recordings_are_collected_from_the_configured_folder(run: pytest.Pytester) -> None:
    diverging(run.path)
    outcome(run).assert_outcomes()
    run.makeini("[pytest]\nctrlmgr_recordings = *.jsonl.gz script.jsonl\n")
    result = outcome(run)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*replay of script.jsonl*", "endpoints shop/s: differs, at checkpoint first"])


@pytest.mark.slow
def test_a_fixture_provides_a_control_plane(run: pytest.Pytester) -> None:
    run.makepyfile("""
        import json
        import pytest
        from urllib.request import Request, urlopen

        def test_served(ctrlmgr_server):
            headers = {"Authorization": f"Bearer {ctrlmgr_server.token}"}
            request = Request(f"{ctrlmgr_server.url}/api/v1/namespaces/default", headers=headers)
            with urlopen(request, context=ctrlmgr_server.trust) as answer:
                assert json.load(answer)["metadata"]["name"] == "default"
            assert ctrlmgr_server.kubeconfig.exists()
            ctrlmgr_server.stop()
            assert "ctrlmgr serves the Kubernetes API" in ctrlmgr_server.output

        def test_flags_that_are_none(start_ctrlmgr):
            with pytest.raises(RuntimeError, match="ended with code 2"):
                start_ctrlmgr("--nonsense")
    """)
    outcome(run).assert_outcomes(passed=2)


@pytest.mark.slow
def test_each_test_has_a_namespace_on_one_server(run: pytest.Pytester) -> None:
    run.makepyfile("""
        import pytest, yaml

        seen = []

        @pytest.mark.parametrize("number", [1, 2])
        def test_served(ctrlmgr_namespace, number):
            config = yaml.safe_load(ctrlmgr_namespace.kubeconfig.read_text())
            assert config["contexts"][0]["context"]["namespace"] == ctrlmgr_namespace.name
            seen.append((ctrlmgr_namespace.server.url, ctrlmgr_namespace.name))
            assert ctrlmgr_namespace.name.startswith("test-")

        def test_that_they_differ():
            assert len({url for url, _ in seen}) == 1
            assert len({name for _, name in seen}) == 2
    """)
    outcome(run).assert_outcomes(passed=3)


def test_an_unused_option_costs_nothing() -> None:
    script = (
        f"import sys, pytest; before = set(sys.modules); import {PLUGIN};"
        " print(*sorted(name for name in set(sys.modules) - before if name.startswith('ctrlmgr')))"
    )
    loaded = subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, check=True).stdout
    assert set(loaded.split()) <= {"ctrlmgr", "ctrlmgr.clock", "ctrlmgr.testing", "ctrlmgr.testing.fake_clock", PLUGIN}
    assert PLUGIN in loaded

"""Tests of failure reports when users' tests fail: a report contains the lines of the users' code, and not our
variables.
"""

from __future__ import annotations

import pytest

from tests.testing.test_plugin import outcome

pytest_plugins = "pytester"

SHOP = """
from ctrlmgr import App, Context, Kind, Model

app = App("shop")

class Shop(Kind, api_version="example.com/v1"):
    spec: Model = Model()

@app.controller(Shop, owns=["v1/ConfigMap"])
def shops(shop: Shop, context: Context) -> None:
    limit = 3
    raise ValueError("four is too many")
"""
TESTS = """
from ctrlmgr import Metadata
from ctrlmgr.testing import Harness
from shop import Shop, app

def test_controller():
    cluster = Harness(app)
    cluster.create(Shop(metadata=Metadata(name="corner")))
    cluster.settle()

def test_refusal():
    Harness(app).create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": []}})
"""


@pytest.fixture
def report(pytester: pytest.Pytester) -> str:
    """Run the tests of a user's project; return the output of pytest."""
    pytester.makepyfile(shop=SHOP, test_shop=TESTS)
    result = outcome(pytester)
    result.assert_outcomes(failed=2)
    return str(result.stdout)


def test_a_failure_shows_only_the_users_lines(report: str) -> None:
    failures = report.partition("short test summary")[0]
    shown = [line for line in failures.splitlines() if ".py:" in line]
    assert [line.partition(":")[0] for line in shown] == ["shop.py", "test_shop.py", "test_shop.py"]
    assert ">       cluster.settle()" in failures
    assert "E       ValueError: four is too many" in failures
    assert (
        "E       AssertionError: controller shops failed for default/corner: ValueError: four is too many" in failures
    )
    assert 'Invalid: Pod "p" is invalid: spec.containers: Required value' in failures


def test_captured_logs_have_no_variables(report: str) -> None:
    assert "reconcile failed" in report
    assert "locals" not in report
    assert len(report.splitlines()) < 90


def test_all_frames_are_shown_on_request(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(shop=SHOP, test_shop=TESTS)
    assert "harness.py:" in str(outcome(pytester, "--full-trace").stdout)

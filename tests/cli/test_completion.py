"""Tests of shell completion."""

from __future__ import annotations

import pytest
from click.shell_completion import ShellComplete

from ctrlmgr import cli
from ctrlmgr.controllers import registry


def offered(*words: str) -> list[str]:
    *before, typed = words
    complete = ShellComplete(cli.ctrlmgr, {}, "ctrlmgr", "_CTRLMGR_COMPLETE")
    return [item.value for item in complete.get_completions(list(before), typed)]


@pytest.fixture
def log(database: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("CTRLMGR_DATABASE_URL", database)
    return database


@pytest.mark.usefixtures("log")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        pytest.param(["get", ""], ["configmaps", "secrets"], id="the kinds that the log holds"),
        pytest.param(["get", "secrets,c"], ["secrets,configmaps"], id="another kind"),
        pytest.param(["get", "cm", ""], ["a", "b"], id="names of the default namespace"),
        pytest.param(["get", "-n", "other", "configmaps", ""], ["a"], id="names of another"),
        pytest.param(["get", "configmaps/"], ["configmaps/a", "configmaps/b"], id="kind and name"),
        pytest.param(["why", "sec"], ["secrets"], id="the kind of one object"),
        pytest.param(["history", "secret", ""], ["s"], id="its name"),
        pytest.param(["events", "--resource", "confi"], ["configmaps"], id="a resource"),
        pytest.param(["get", "pods", "--at", ""], ["head", "6", "1h", "10m", "1"], id="moments"),
        pytest.param(["diff", "--from", "2026"], ["2026-01-02T03:04:05Z"], id="the newest event's time"),
        pytest.param(["sql", "hot_"], ["hot_objects", "hot_resources"], id="questions"),
        pytest.param(["sql", "history", "na"], ["name=", "namespace="], id="parameters of a question"),
        pytest.param(["serve", "--controllers", "*,-endpoints-"], ["*,-endpoints-controller"], id="not a controller"),
    ],
)
def test_existing_objects_are_offered(words: list[str], expected: list[str]) -> None:
    assert set(expected) <= set(offered(*words))
    assert all(each.startswith(words[-1]) for each in offered(*words))


@pytest.mark.usefixtures("log")
def test_every_controller_is_offered() -> None:
    assert {each.name for each in registry.ALL} <= set(offered("replay", "--controllers", ""))


def test_without_a_log_completion_offers_kubernetes_kinds_silently(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CTRLMGR_DATABASE_URL", "sqlite:////nonexistent/log.db")
    assert offered("get", "po") == []
    assert {"pods", "services"} <= set(offered("events", "--resource", ""))
    assert "head" in offered("get", "pods", "--at", "")
    assert capfd.readouterr() == ("", "")

"""Apps are found by name; what is wrong with one is one line that says what and where."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from ctrlmgr import App, Context, Kind, Untyped
from ctrlmgr.controllers import registry
from ctrlmgr.errors import SettingsError
from ctrlmgr.framework import loading
from ctrlmgr.framework.assembly import check_names
from ctrlmgr.framework.loading import load_app, load_apps


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A working directory in which apps may lie."""
    before = set(sys.modules)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def test_an_app_is_found_in_the_working_directory(here: Path) -> None:
    (here / "corner_shop.py").write_text("from ctrlmgr import App\napp = App('corner')\n")
    assert load_app("corner_shop:app").name == "corner"
    assert len(load_apps(["corner_shop:app", "corner_shop:app"])) == 1


@pytest.mark.parametrize(
    ("text", "name", "message"),
    [
        ("", "missing_shop:app", "--app missing_shop:app: there is no module missing_shop"),
        ("", "broken_shop:app", "module broken_shop has no 'app'"),
        ("app = 5", "broken_shop:app", "broken_shop:app is a int, and not a ctrlmgr.App"),
        (
            "import nothing_of_this_name",
            "broken_shop:app",
            "ModuleNotFoundError: No module named 'nothing_of_this_name'",
        ),
        ("x = 1\ny = z", "broken_shop:app", r"NameError: name 'z' is not defined \(.*broken_shop.py:2\)"),
        ("raise SystemExit(4)", "broken_shop:app", "broken_shop cannot be imported: SystemExit: 4"),
        ("def (", "broken_shop:app", "broken_shop cannot be imported: SyntaxError"),
        ("", "nobody", "no installed package has an app of that name"),
    ],
)
def test_what_is_wrong_is_one_line(here: Path, text: str, name: str, message: str) -> None:
    (here / "broken_shop.py").write_text(text)
    with pytest.raises(SettingsError, match=message) as refused:
        load_app(name)
    assert "\n" not in str(refused.value)


def test_installed_packages_name_their_apps(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "packed_shop.py").write_text("from ctrlmgr import App\napp = App('packed')\n")
    point = EntryPoint("packed", "packed_shop:app", loading.GROUP)
    monkeypatch.setattr(loading, "entry_points", lambda **chosen: [point])
    assert load_app("packed").name == "packed"
    assert loading.installed() == ["packed"]


def reconcile(obj: Untyped, context: Context) -> None:
    """Do nothing."""


def test_two_controllers_of_one_name_are_refused_with_their_places() -> None:
    one, other = App("one"), App("other")
    one.controller("v1/Pod", name="same")(reconcile)
    other.controller("v1/Node", name="same")(reconcile)
    with pytest.raises(
        SettingsError, match=r"two controllers are called same: .*test_loading:reconcile and .*reconcile"
    ):
        check_names([one, other], registry.ALL)
    ours = App("ours")
    ours.controller("v1/Pod", name="endpoints-controller")(reconcile)
    with pytest.raises(SettingsError, match="two controllers are called endpoints-controller"):
        check_names([ours], registry.ALL)


async def never(obj: Untyped, context: Context) -> None:
    """Wait."""


@pytest.mark.parametrize(
    ("declare", "message"),
    [
        (lambda app: App("No Name"), "'No Name' is no name of an app"),
        (lambda app: app.controller("ConfigMap")(reconcile), "the API version '' is none"),
        (lambda app: app.controller(Kind)(reconcile), "is no kind"),
        (lambda app: app.controller("v1/Pod")(never), "reconcile is a plain function"),
        (lambda app: app.controller("v1/Pod")(lambda obj: None), "is no name of a controller"),
        (lambda app: app.controller("v1/Pod", name="x")(lambda obj: None), "takes two things"),
        (lambda app: app.controller("v1/Pod", workers=0)(reconcile), "has 0 workers"),
        (lambda app: app.controller("v1/Pod")(reconcile).finalize("bucket"), "no name of a finalizer"),
    ],
)
def test_what_cannot_be_right_is_refused_where_it_is_declared(declare: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        declare(App("any"))

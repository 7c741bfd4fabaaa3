"""Tests of finding apps by name: each error is one line with the cause and the place."""

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
from ctrlmgr.framework import app_loading
from ctrlmgr.framework.app_loading import load_app, load_apps
from ctrlmgr.framework.controller_building import check_names


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a working directory in which tests create apps."""
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
        ("app = 5", "broken_shop:app", "broken_shop:app is a int, not a ctrlmgr.App"),
        (
            "import nothing_of_this_name",
            "broken_shop:app",
            "ModuleNotFoundError: No module named 'nothing_of_this_name'",
        ),
        ("x = 1\ny = z", "broken_shop:app", r"NameError: name 'z' is not defined \(.*broken_shop.py:2\)"),
        (
            "from ctrlmgr import Kind\nclass Cofigmap(Kind, api_version='v1'): ...",
            "broken_shop:app",
            r"did you mean v1/ConfigMap\? \(.*broken_shop.py:2\)$",
        ),
        ("raise SystemExit(4)", "broken_shop:app", "broken_shop cannot be imported: SystemExit: 4"),
        ("def (", "broken_shop:app", "broken_shop cannot be imported: SyntaxError"),
        ("", "nobody", "no installed package has an app of that name"),
    ],
)
def test_a_loading_error_is_one_line(here: Path, text: str, name: str, message: str) -> None:
    (here / "broken_shop.py").write_text(text)
    with pytest.raises(SettingsError, match=message) as refused:
        load_app(name)
    assert "\n" not in str(refused.value)


APP = "from ctrlmgr import App\napp = App('filed')\n"


@pytest.mark.parametrize("name", ["operator", "attr", "website"])
@pytest.mark.parametrize("place", ["{}.py", "{}.py:app", "{}:app"])
def test_a_file_of_any_name_is_loaded(here: Path, name: str, place: str) -> None:
    (here / f"{name}.py").write_text(f"import attr, operator\nassert operator.add and attr.define\n{APP}")
    taken = sys.modules.get(name)
    app = load_app(place.format(name))
    assert app.name == "filed"
    assert load_app(f"{name}.py") is app
    assert taken is None or sys.modules[name] is taken  # the first app with the name keeps it


def test_a_file_elsewhere_imports_its_neighbours_and_its_package(here: Path) -> None:
    (here / "src" / "corner").mkdir(parents=True)
    (here / "src" / "neighbour_of_shop.py").write_text("NAME = 'near'\n")
    (here / "src" / "corner" / "__init__.py").write_text("")
    (here / "src" / "corner" / "name.py").write_text("NAME = 'packed'\n")
    (here / "src" / "lone_shop.py").write_text(
        "from ctrlmgr import App\nfrom neighbour_of_shop import NAME\nshop = App(NAME)\n"
    )
    (here / "src" / "corner" / "operator.py").write_text(
        "from ctrlmgr import App\nfrom .name import NAME\napp = App(NAME)\n"
    )
    assert load_app("src/lone_shop.py").name == "near"
    assert load_app("src/corner/operator.py").name == "packed"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1", r'files_shop.py: it has no ctrlmgr.App; `app = App\("shop"\)` makes one'),
        (
            "from ctrlmgr import App\none, two = App('one'), App('two')",
            "it has 2 apps; name one of them: files_shop.py:one or files_shop.py:two",
        ),
        ("x = y", r"NameError: name 'y' is not defined \(.*files_shop.py:1\)"),
        (None, "--app files_shop.py: there is no file files_shop.py"),
    ],
)
def test_an_error_in_a_file_is_one_line(here: Path, text: str | None, message: str) -> None:
    if text is not None:
        (here / "files_shop.py").write_text(text)
    with pytest.raises(SettingsError, match=message) as refused:
        load_app("files_shop.py")
    assert "\n" not in str(refused.value)


def test_installed_packages_declare_their_apps(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "packed_shop.py").write_text("from ctrlmgr import App\napp = App('packed')\n")
    point = EntryPoint("packed", "packed_shop:app", app_loading.GROUP)
    monkeypatch.setattr(app_loading, "entry_points", lambda **chosen: [point])
    assert load_app("packed").name == "packed"
    assert app_loading.installed() == ["packed"]


def reconcile(obj: Untyped, context: Context) -> None:
    """Do nothing."""


def test_two_controllers_of_one_name_are_refused_with_their_positions() -> None:
    one, other = App("one"), App("other")
    one.controller("v1/Pod", name="same")(reconcile)
    other.controller("v1/Node", name="same")(reconcile)
    with pytest.raises(
        SettingsError, match=r"two controllers are called same: .*test_app_loading:reconcile and .*reconcile"
    ):
        check_names([one, other], registry.ALL)
    ours = App("ours")
    ours.controller("v1/Pod", name="endpoints-controller")(reconcile)
    with pytest.raises(SettingsError, match="two controllers are called endpoints-controller"):
        check_names([ours], registry.ALL)


@pytest.mark.parametrize(
    "name", ["networking.k8s.io/v1/Gateway", "gateway.networking.k8s.io/v1/Gateway", "example.com/v1/Sop"]
)
def test_a_kind_of_a_future_definition_is_declared(name: str) -> None:
    assert App("later").controller(name)(reconcile).declaration.label == name


@pytest.mark.parametrize(
    ("declare", "message"),
    [
        (lambda app: App("No Name"), "'No Name' is not a valid name of an app"),
        (lambda app: app.controller("ConfigMap")(reconcile), "has no API version; did you mean v1/ConfigMap"),
        (lambda app: app.controller(Kind)(reconcile), "is not a kind"),
        (
            lambda app: app.controller("v1/Cofigmap")(reconcile),
            "v1/Cofigmap: the core group has no kind 'Cofigmap'; did you mean v1/ConfigMap?",
        ),
        (
            lambda app: app.controller("v1/Pod", owns=["v1/Deployment"])(reconcile),
            "the core group has no kind 'Deployment'; did you mean apps/v1/Deployment?",
        ),
        (
            lambda app: app.admission("app/v1/Job")(reconcile),
            "Kubernetes has no group 'app'; did you mean batch/v1/Job?",
        ),
        (lambda app: app.controller("batch/v1/Gizmo")(reconcile), "the group batch has no kind 'Gizmo'$"),
        (
            lambda app: app.controller("networking.k8s.io/v1/Ingres")(reconcile),
            "did you mean networking.k8s.io/v1/Ingress?",
        ),
        (lambda app: app.controller("v1/Pod")(lambda obj: None), "is not a valid name of a controller"),
        (lambda app: app.controller("v1/Pod", name="x")(lambda obj: None), "takes two things"),
        (lambda app: app.controller("v1/Pod", workers=0)(reconcile), "workers=0 is not a whole number of at least 1"),
        (lambda app: app.controller("v1/Pod")(reconcile).finalize("bucket"), "not a valid name of a finalizer"),
    ],
)
def test_invalid_declarations_are_refused(declare: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        declare(App("any"))

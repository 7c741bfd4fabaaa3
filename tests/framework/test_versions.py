"""Tests of kinds with several API versions: an app reads objects in the version of its class, or
fails with an error.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ctrlmgr import App, Context, Kind, Model
from ctrlmgr.errors import SettingsError
from ctrlmgr.framework.remote.controller_process import SelectedControllers
from ctrlmgr.testing.served import ServerProcess
from tests.e2e.widgets import DEFINITIONS, Hook, definition, version
from tests.framework.served import HttpsCluster, wait_until
from tests.framework.test_run import run

GROUP = "versions.example.com"
APP = f'''
from ctrlmgr import App, Context, Kind, Metadata, Model

app = App("{{name}}")


class Spec(Model):
    {{field}}: int = 0


class Widget(Kind, api_version="{GROUP}/{{version}}", existing=True):
    spec: Spec = Spec()


class ConfigMap(Kind, api_version="v1"):
    data: dict[str, str] = {{{{}}}}


@app.controller(Widget, owns=[ConfigMap])
def {{name}}_controller(widget: Widget, context: Context) -> None:
    """Say how large it is."""
    size = str(widget.spec.{{field}})
    context.apply(ConfigMap(metadata=Metadata(name=f"{{{{widget.name}}}}-{{name}}"), data={{{{"size": size}}}}))
'''
"""An app that uses one API version of the kind; in each version, the field for the size has a different name."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, field, api in (("old", "size", "v1"), ("new", "width", "v2")):
        (tmp_path / f"{name}.py").write_text(APP.format(name=name, field=field, version=api))
    return tmp_path


@pytest.fixture
def hook(folder: Path) -> Iterator[Hook]:
    hook = Hook(folder)
    with hook.running():
        yield hook


def define(cluster: HttpsCluster, **spec: Any) -> None:
    """Define a kind with the versions v1, which is stored, and v2, which is preferred, and create an object."""
    versions = version("v1", "size"), version("v2", "width", storage=False)
    cluster.ask("POST", DEFINITIONS, definition(GROUP, *versions, **spec))
    path = f"/apis/{GROUP}/v1/namespaces/default/widgets"
    wait_until(lambda: cluster.is_served(path))
    widget = {"apiVersion": f"{GROUP}/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"size": 3}}
    cluster.ask("POST", path, widget)


def size(cluster: HttpsCluster, name: str) -> Any:
    found = cluster.get("v1/ConfigMap", f"w-{name}")
    return found and found["data"]["size"]


def test_an_app_reads_its_version_regardless_of_the_stored_one(
    folder: Path, hook: Hook, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(folder))
    with ServerProcess(folder, "--database", "memory:") as server:
        cluster = HttpsCluster(server)
        define(cluster, conversion=hook.conversion)
        alone = "--leader-elect=false"
        with run(server, "old", "old:app", alone), run(server, "new", "new:app", alone):
            wait_until(lambda: (size(cluster, "old"), size(cluster, "new")) == ("3", "3"))


def test_serve_refuses_versions_that_need_a_webhook(folder: Path, hook: Hook) -> None:
    database = ("--database", f"sqlite:///{folder}/log.db")
    with ServerProcess(folder, *database) as server:
        define(HttpsCluster(server), conversion=hook.conversion)
    command = [sys.executable, "-m", "ctrlmgr", "serve", "--listen", "127.0.0.1:0", *database, "--app", "new:app"]
    environment = {**os.environ, "CTRLMGR_DATA_DIR": str(folder)}
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (
        2,
        f"error: new:Widget is of version v2, and widgets.{GROUP} is stored as v1 and converted by a webhook:"
        " run the app with `ctrlmgr run`, which reads its own version\n",
    )


def test_serve_reads_every_version_without_a_conversion_webhook(folder: Path) -> None:
    (folder / "new.py").write_text(APP.format(name="new", field="size", version="v2"))
    with ServerProcess(folder, "--database", "memory:", "--app", "new:app") as server:
        cluster = HttpsCluster(server)
        define(cluster)
        wait_until(lambda: size(cluster, "new") == "3")


class Spec(Model):
    size: int = 0


class First(Kind, api_version=f"{GROUP}/v1", kind="Widget", existing=True):
    spec: Spec = Spec()


class Second(Kind, api_version=f"{GROUP}/v2", kind="Widget", existing=True):
    spec: Spec = Spec()


def test_a_process_reads_a_kind_in_one_version() -> None:
    app = App("both")

    @app.controller(First, reads=[Second])
    def both_controller(first: First, context: Context) -> None:
        """Read both."""

    with pytest.raises(SettingsError, match=r"First and .*Second are two versions of widgets\.versions\.example\.com"):
        _ = SelectedControllers([app], []).versions

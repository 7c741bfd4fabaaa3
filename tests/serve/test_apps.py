"""Tests of apps in `ctrlmgr serve --app`: the example operator passes its scenario, and an invalid app causes one line
of error.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from ctrlmgr.api.resource import Key, Resource
from ctrlmgr.clock import SystemClock
from ctrlmgr.eventlog import open_log
from ctrlmgr.testing.served import ServerProcess
from tests.framework.served import HttpsCluster, wait_until
from tests.framework.shops import SHOP, check_scenario

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copy(EXAMPLES / "shop.py", tmp_path / "shop.py")
    return tmp_path


def test_the_example_operator_runs_in_serve(folder: Path) -> None:
    database = f"sqlite:///{folder}/shop.db"
    with ServerProcess(folder, "--database", database, "--app", "shop:app") as server:
        cluster = HttpsCluster(server)
        check_scenario(cluster)
        events = server.output
        assert "definition installed" in events
        cluster.delete("example.com/v1/Shop", "corner")
        wait_until(lambda: cluster.get("v1/ConfigMap", "corner-prices") is None)  # objects of the garbage collector
    users = {"system:admin"}  # objects of the scenario
    assert authors(database, Resource("", "configmaps"), "corner-prices") - users == {
        "system:serviceaccount:kube-system:shop-controller",
        "system:serviceaccount:kube-system:generic-garbage-collector",
    }


def authors(database: str, resource: Resource, name: str) -> set[str]:
    """Return the users that wrote an object in the namespace `default`."""
    log = open_log(database, clock=SystemClock(), random=Random(1))
    try:
        events = log.events_after(0, resource=resource, limit=10_000)
        return {event.actor for event in events if event.key == Key("default", name)}
    finally:
        log.close()


def serve(folder: Path, *flags: str) -> str:
    """Return the output of `ctrlmgr serve`, which must exit with code 2."""
    command = [
        sys.executable,
        "-m",
        "ctrlmgr",
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--database",
        "sqlite:///log.db",
        *flags,
    ]
    environment = {**os.environ, "CTRLMGR_DATA_DIR": str(folder)}
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment, check=False, timeout=60)
    assert done.returncode == 2, done.stderr
    (line,) = done.stderr.strip().splitlines()
    return line


def test_an_invalid_app_ends_serve_with_one_line(folder: Path) -> None:
    assert serve(folder, "--app", "store:app") == "error: --app store:app: there is no module store"
    (folder / "twice.py").write_text((folder / "shop.py").read_text())
    assert serve(folder, "--app", "shop:app", "--app", "twice:app").startswith(
        "error: two controllers are called shop-controller: shop:shop_controller and twice:shop_controller"
    )


def test_a_kind_that_contradicts_a_stored_definition_ends_serve_with_one_line(folder: Path) -> None:
    with ServerProcess(folder, "--database", f"sqlite:///{folder}/log.db", "--controllers", "shop:app") as server:
        cluster = HttpsCluster(server)
        cluster.create(SHOP)
        cluster.eventually(lambda: cluster.get("v1/ConfigMap", "corner-prices") is not None)
    text = (folder / "shop.py").read_text()
    (folder / "other.py").write_text(text.replace("dict[str, int]", "dict[str, str]"))
    assert serve(folder, "--app", "other:app") == (
        "error: other:Shop contradicts the stored definition shops.example.com:"
        " .spec.prices{} is of type integer, not string"
    )


def test_an_undefined_kind_is_named(folder: Path) -> None:
    text = "from ctrlmgr import App\napp = App('late')\n"
    text += "@app.controller('example.org/v1/Later', reads=['v1/Pod', 'gateway.networking.k8s.io/v1/Gateway'])\n"
    # `python -m`, as the tests start it, imports modules from the working directory instead of Python's own
    (folder / "src").mkdir()
    (folder / "src" / "operator.py").write_text(f"{text}def later(obj, context): ...\n")
    with ServerProcess(folder, "--database", "memory:", "--app", str(folder / "src" / "operator.py")) as server:
        said = server.output
    assert "waiting for a definition" in said
    assert "laters.example.org" in said
    assert "pods" not in [each for line in said.splitlines() if "waiting for a def" in line for each in line.split()]

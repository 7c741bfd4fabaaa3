"""Tests of apps in replays: the writes that an app made in the recording are not replayed, and the app must make them
again.
"""

from __future__ import annotations

import gzip
import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ctrlmgr import cli
from ctrlmgr.framework.app_loading import load_app
from ctrlmgr.testing.replays import Replayer
from ctrlmgr.testing.served import ServerProcess
from tests.framework.served import HttpsCluster
from tests.framework.shops import SHOP, check_scenario

EXAMPLE = Path(__file__).parents[2] / "examples" / "shop.py"
OTHER = "other_shop"
"""The example operator with other prices than in the recording."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Recordings of the example operator: one exported from a log, and one in the format of a watch."""
    folder = tmp_path_factory.mktemp("shops")
    shutil.copy(EXAMPLE, folder / "shop.py")
    (folder / f"{OTHER}.py").write_text(EXAMPLE.read_text().replace("{price} {shop", "{shop.name}: {price} {shop"))
    url = f"sqlite:///{folder}/log.db"
    with ServerProcess(folder, "--database", url, "--app", "shop:app") as server:
        cluster = HttpsCluster(server)
        check_scenario(cluster)
        cluster.delete("example.com/v1/Shop", "corner")
        cluster.eventually(lambda: cluster.get("v1/ConfigMap", "corner-prices") is None)
        cluster.create({**SHOP, "metadata": {"name": "last"}})
        cluster.eventually(lambda: "conditions" in (cluster.get("example.com/v1/Shop", "last").get("status") or {}))
    assert cli.run(["record", "--database", url, "-o", str(folder / "log.jsonl.gz")]) == cli.ExitCode.OK
    with gzip.open(folder / "log.jsonl.gz", "rt") as lines, (folder / "watch.jsonl").open("w") as plain:
        for line in map(json.loads, lines):
            plain.write(json.dumps({each: line[each] for each in ("type", "object", "recordedAt")}) + "\n")
    return folder


@pytest.fixture(autouse=True)
def here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))
    yield
    for name in ("shop", OTHER):
        sys.modules.pop(name, None)


def replay(capsys: pytest.CaptureFixture[str], name: str, app: str) -> Any:
    capsys.readouterr()
    cli.run(["replay", name, "--app", f"{app}:app", "-o", "json", "--no-progress"])
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("name", ["log.jsonl.gz", "watch.jsonl"])
def test_the_example_operator_replays_to_its_recorded_state(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = replay(capsys, name, "shop"), replay(capsys, name, "shop")
    assert first["divergences"] == second["divergences"] == []
    assert first["hash"] == second["hash"]
    assert first["writes"] >= 7  # the price lists and statuses are written several times


@pytest.mark.parametrize("name", ["log.jsonl.gz", "watch.jsonl"])
def test_another_operator_diverges(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    (divergence,) = replay(capsys, name, OTHER)["divergences"]
    assert (divergence["resource"], divergence["name"]) == ("configmaps", "last-prices")
    assert [each["ours"] for each in divergence["differences"]] == ["last: 2 EUR", "last: 3 EUR"]


def test_a_replay_runs_in_a_test_of_the_app(folder: Path) -> None:
    with Replayer(folder) as replay:
        report = replay("log.jsonl.gz", controllers={}, apps=[load_app("shop:app", origin="test")])
        assert not report.divergences
        prices = replay.get("configmaps", "last-prices", "default")
        assert prices is not None
        assert prices.to_dict()["data"] == {"tea": "3 EUR", "milk": "2 EUR"}


def test_an_app_that_cannot_run_is_reported_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["replay", "log.jsonl.gz", "--app", "store:app"]) == cli.ExitCode.USAGE
    assert capsys.readouterr().err.strip() == "error: --app store:app: there is no module store"

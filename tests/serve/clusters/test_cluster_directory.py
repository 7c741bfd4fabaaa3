"""Tests of the directories of clusters: a cluster exists completely or not at all."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from random import Random

import pytest

from ctrlmgr.errors import AlreadyExists, BadRequest, NotFound, SettingsError
from ctrlmgr.serve.clusters.cluster_directory import ClusterDirectory


def opened(root: Path) -> ClusterDirectory:
    return ClusterDirectory(root, Random(1))


def write(path: Path) -> None:
    (path / "log").write_text("full")


def write_and_end(path: Path) -> None:
    write(path)
    os._exit(0)


def test_a_cluster_is_created_found_and_deleted(tmp_path: Path) -> None:
    clusters = opened(tmp_path / "clusters")
    assert clusters.names() == []
    clusters.create("b", write)
    clusters.create("a", write)
    assert clusters.names() == ["a", "b"]
    assert (clusters.path("a") / "log").read_text() == "full"
    clusters.delete("a")
    assert clusters.names() == ["b"]
    with pytest.raises(NotFound):
        clusters.path("a")
    with pytest.raises(NotFound):
        clusters.delete("a")


def test_the_name_of_a_deleted_cluster_comes_back_empty(tmp_path: Path) -> None:
    clusters = opened(tmp_path)
    clusters.create("a", write)
    clusters.delete("a")
    assert [*clusters.create("a", lambda path: None).iterdir()] == []


@pytest.mark.parametrize("name", ["", "A", "a.b", "..", ".lock", "a/b", "-a", "a-", "a" * 64, "é"])
def test_a_name_is_a_dns_label(tmp_path: Path, name: str) -> None:
    clusters = opened(tmp_path)
    with pytest.raises(BadRequest, match="must be a DNS label"):
        clusters.create(name, write)
    with pytest.raises(NotFound):
        clusters.path(name)
    assert clusters.names() == []


def test_a_cluster_that_cannot_be_filled_does_not_exist(tmp_path: Path) -> None:
    clusters = opened(tmp_path)

    def fail(path: Path) -> None:
        write(path)
        raise OSError("no space left on device")

    with pytest.raises(OSError, match="no space left"):
        clusters.create("a", fail)
    assert clusters.names() == []
    assert [each.name for each in tmp_path.iterdir()] == [".lock"]


def test_an_existing_cluster_is_not_replaced(tmp_path: Path) -> None:
    clusters = opened(tmp_path)
    clusters.create("a", write)
    with pytest.raises(AlreadyExists):
        clusters.create("a", lambda path: None)
    both = threading.Barrier(2)
    created: list[str] = []

    def create(text: str) -> None:
        def fill(path: Path) -> None:
            (path / "log").write_text(text)
            both.wait(10)  # both threads have found that no cluster has the name

        try:
            clusters.create("b", fill)
            created.append(text)
        except AlreadyExists:
            pass

    pair = [threading.Thread(target=create, args=(text,)) for text in ("one", "two")]
    for each in pair:
        each.start()
    for each in pair:
        each.join(10)
    assert [(clusters.path("b") / "log").read_text()] == created


@pytest.mark.parametrize("point", ["filled", "created", "deleted"])
def test_a_killed_process_leaves_no_half_a_cluster(tmp_path: Path, point: str) -> None:
    """A child process ends without any cleanup, at a point within `create` or `delete`."""
    child = os.fork()
    if child == 0:
        clusters = opened(tmp_path)
        clusters.create("kept", write)
        if point == "deleted":
            clusters.create("a", write)
            os.rename(tmp_path / "a", tmp_path / ".deleted-1")  # `delete` is here after its first step
            os._exit(0)
        clusters.create("a", write if point == "created" else write_and_end)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    clusters = opened(tmp_path)
    assert clusters.names() == (["a", "kept"] if point == "created" else ["kept"])
    assert all((clusters.path(name) / "log").read_text() == "full" for name in clusters.names())
    assert {each.name for each in tmp_path.iterdir()} == {".lock", *clusters.names()}


def test_one_process_holds_the_directory(tmp_path: Path) -> None:
    clusters = opened(tmp_path)
    with pytest.raises(SettingsError, match="another process serves the clusters"):
        opened(tmp_path)
    clusters.close()
    opened(tmp_path).close()


def test_an_unusable_directory_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SettingsError, match=r"clusters\.directory: .*file"):
        opened(tmp_path / "file")

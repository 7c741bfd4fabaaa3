"""Tests of `ctrlmgr record` while the server is under load, stopped and killed; the tests compare the recording with
the log.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from ctrlmgr.api.resource import ENDPOINT_SLICES, ENDPOINTS, LEASES, PODS, SERVICES, Resource
from ctrlmgr.clock import SystemClock
from ctrlmgr.eventlog import open_log
from ctrlmgr.recording.format import Change, RecordingReader
from tests.background import DEADLINE, background
from tests.e2e.clients.test_informer_restart import NAMESPACE, WRITERS
from tests.e2e.endpoints_load import NODE, come_and_go, pod, running, settle
from tests.e2e.load import Writer
from tests.e2e.serving import Server, until

CONFIG_MAPS = Resource("", "configmaps")
RESOURCES = "namespaces,nodes,services,pods,endpoints,endpointslices,configmaps,leases,secrets"
EMPTY = 100
"""A number of bytes that a compressed file exceeds only after its first line was written."""
WRITES = 8
"""The number of acknowledged writes of each writer after which the server is stopped again."""


def recording(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "ctrlmgr", "record", *arguments]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, "KUBECONFIG": ""})


def ended(process: subprocess.Popen[str], number: int = signal.SIGINT) -> str:
    process.send_signal(number)
    _, said = process.communicate(timeout=DEADLINE)
    assert process.returncode == 0, said
    return said


def changes(path: Path) -> list[tuple[str, Resource, int]]:
    return [
        (each.type.name, each.object.resource, each.object.revision)
        for each in RecordingReader(path)
        if isinstance(each, Change)
    ]


# ssl raises this when a handshake is cut off
@pytest.mark.filterwarnings("ignore:unclosed <ssl.SSLSocket:ResourceWarning")
@pytest.mark.slow
@pytest.mark.timeout(300)  # the machine may be busy with other tests
def test_a_recording_contains_every_change_once_despite_server_failures(tmp_path: Path) -> None:
    url, path, exported = f"sqlite:///{tmp_path / 'ctrlmgr.db'}", tmp_path / "r.jsonl.gz", tmp_path / "log.jsonl.gz"
    with closing(Server(tmp_path, "--database", url)) as server, ExitStack() as leaving:
        server.start()
        server.create("/api/v1/nodes", {"metadata": {"name": NODE}})
        server.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        server.create(
            f"/api/v1/namespaces/{NAMESPACE}/secrets", {"metadata": {"name": "s"}, "stringData": {"a": "shh"}}
        )
        writers = [Writer(server, where, make, seed) for seed, (where, make) in enumerate(WRITERS)]
        writers.append(Writer(server, f"/api/v1/namespaces/{NAMESPACE}/pods", pod, len(writers), running))
        writing = [background(writer.run) for writer in writers]

        def written(count: int) -> None:
            until(lambda: any(each.done() for each in writing) or all(len(w.acknowledged) >= count for w in writers))

        written(WRITES)
        recorder = recording("--kubeconfig", str(server.kubeconfig), "--resources", RESOURCES, "-o", str(path))
        leaving.callback(recorder.kill)
        until(lambda: recorder.poll() is not None or (path.exists() and path.stat().st_size > EMPTY))
        passing: list[str] = []
        for life, ending in enumerate(("kill", "stop"), start=2):
            passing.append(f"passing-{life}")
            come_and_go(server, passing[-1])
            written(life * WRITES)
            getattr(server, ending)()
            server.start()
        written(4 * WRITES)
        for writer in writers:
            writer.stop()
        for work in writing:
            work.result(DEADLINE)
        settle(server, NAMESPACE, passing)
        said = ended(recorder)
        server.stop()
    assert "may be missing" not in said
    _, told = recording("--database", url, "-o", str(exported)).communicate(timeout=DEADLINE)
    assert str(exported) in told
    assert_complete(path, url)
    assert b"c2ho" not in b"".join(entry.object.body for entry in RecordingReader(path) if isinstance(entry, Change))
    for each in (path, exported):
        assert_replays(each)


def assert_complete(path: Path, url: str) -> None:
    """Check that the recording contains each event of the watched resources once, except the events of periodic
    writers.
    """
    recorded = changes(path)
    with closing(open_log(url, clock=SystemClock(), random=random.Random(1))) as log:
        history = [(event.type.name, event.resource, event.revision) for event in log.scan()]
    wanted, end = {CONFIG_MAPS, SERVICES, LEASES, PODS, ENDPOINTS, ENDPOINT_SLICES}, recorded[-1][2]
    for resource in wanted:
        told = [each for each in recorded if each[1] == resource]
        # The listed objects come first, as ADDED; from the first other change on, the lines are the history.
        begin = next(revision for type_, _, revision in told if type_ != "ADDED")
        expected = [each for each in history if each[1] == resource and begin <= each[2] <= end]
        assert [each for each in told if each[2] >= begin] == expected
    # The leader renews its lease until the end, later than the recording.
    assert not [each for each in history if each[1] in wanted - {LEASES} and each[2] > end]


def assert_replays(path: Path) -> None:
    """Replay the recording, and assert that our controllers produce the writes of the recorded controllers."""
    command = [sys.executable, "-m", "ctrlmgr", "replay", str(path), "-o", "json"]
    report = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=False).stdout)
    assert report["divergences"] == []
    written = {
        (entry.object.resource, entry.object.key)
        for entry in RecordingReader(path)
        if isinstance(entry, Change) and entry.object.namespace == NAMESPACE
    }
    assert report["writes"] > len([each for each in written if each[0] in (ENDPOINTS, ENDPOINT_SLICES)]) > 2
    assert report["objectsCompared"] > len([each for each in written if each[0] == SERVICES])


def test_one_namespace_is_recorded_and_then_the_log_itself(server: Server, database: str, tmp_path: Path) -> None:
    namespace = server.new_namespace()
    server.create(f"/api/v1/namespaces/{namespace}/configmaps", {"metadata": {"name": "mine"}})
    seen, exported = tmp_path / "seen.jsonl", tmp_path / "exported.jsonl.gz"
    where = ("-n", namespace, "--resources", "cm")
    process = recording("--kubeconfig", str(server.kubeconfig), *where, "--for", "100ms", "-o", str(seen))
    _, said = process.communicate(timeout=DEADLINE)
    assert process.returncode == 0, said
    assert f"are in {seen}" in said
    process = recording("--database", database, "-n", namespace, "--resources", "configmaps", "-o", str(exported))
    _, said = process.communicate(timeout=DEADLINE)
    assert process.returncode == 0, said
    assert changes(seen) == changes(exported) != []


def done(*arguments: str) -> tuple[int, str]:
    process = recording(*arguments)
    _, said = process.communicate(timeout=DEADLINE)
    return process.returncode, said


@pytest.mark.parametrize("what", ["cluster", "log"])
def test_an_existing_file_is_continued_or_overwritten(server: Server, database: str, tmp_path: Path, what: str) -> None:
    namespace = server.new_namespace()
    maps, path = f"/api/v1/namespaces/{namespace}/configmaps", tmp_path / "recorded.jsonl.gz"
    for name in ("stays", "changes", "goes"):
        server.create(maps, {"metadata": {"name": name}})
    source = {"cluster": ("--kubeconfig", str(server.kubeconfig), "--for", "100ms"), "log": ("--database", database)}
    arguments = (*source[what], "-n", namespace, "--resources", "configmaps", "-o", str(path))
    assert done(*arguments, "--append")[0] == 0, "there is nothing yet to go on with"
    before, stored = changes(path), path.read_bytes()
    server.request("PATCH", f"{maps}/changes", {"data": {"a": "b"}})
    server.request("DELETE", f"{maps}/goes")
    server.create(maps, {"metadata": {"name": "comes"}})
    code, said = done(*arguments)
    assert (code, path.read_bytes()) == (2, stored), said
    assert "exists: --append continues it, --force overwrites it" in said
    for _ in range(2):  # at the second call, nothing has changed
        code, said = done(*arguments, "--append")
        assert code == 0, said
        assert changes(path)[: len(before)] == before
        assert sorted(each[0] for each in changes(path)[len(before) :]) == ["ADDED", "DELETED", "MODIFIED"]
    code, said = done(*arguments, "--append", "--resources", "secrets")
    assert (code, "configmaps" in said) == (2, True), said
    assert done(*arguments, "--append", "--force")[0] == 2
    assert done(*arguments, "--force")[0] == 0
    assert changes(path)[0][0] == "ADDED"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--resources", "nonsense"), "the cluster serves no 'nonsense'"),
        (("--resources", "nodes", "-n", "default"), "none of these resources is namespaced"),
        (("--context", "none"), "has no context 'none'; there are: ctrlmgr"),
        (("--redact", "nonsense"), "is not a rule"),
        (("--database", "sqlite:///none.db"), "--database records a log"),
    ],
)
def test_unsupported_recordings_are_refused(
    server: Server, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    target = str(tmp_path / "a.jsonl")
    process = recording("--kubeconfig", str(server.kubeconfig), "-o", target, *arguments)
    _, said = process.communicate(timeout=DEADLINE)
    assert process.returncode == 2, said
    assert said.startswith("error: ")
    assert message in said

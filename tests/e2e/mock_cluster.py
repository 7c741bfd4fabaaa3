"""A real `ctrlmgr serve --recording` for tests, and the expected states of the recording."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Resource
from ctrlmgr.eventlog.event import EventType
from ctrlmgr.recording.format import Change, RecordingReader
from tests.e2e.serving import DEADLINE, Server


class MockCluster(Server):
    """A server that serves a recording; `kubeconfig` is the file that the server writes for this recording."""

    def __init__(self, folder: Path, recording: Path, *arguments: str) -> None:
        super().__init__(folder, "--recording", str(recording), *arguments)
        self.folder = folder
        self.kubeconfig = folder / "play" / "kubeconfig"

    def play(self, *arguments: str) -> str:
        """Run `ctrlmgr play` with these arguments, and return its output."""
        done = subprocess.run(
            [sys.executable, "-m", "ctrlmgr", "play", *arguments],
            env={**os.environ, "CTRLMGR_DATA_DIR": str(self.folder)},
            cwd=Path(__file__).parents[2],
            capture_output=True,
            text=True,
            timeout=2 * DEADLINE,
        )
        assert done.returncode == 0, done
        return done.stdout

    def wait(self) -> int:
        """Wait until the process ends, without sending a signal, and return its exit code."""
        process, self._process = self._process, None
        assert process is not None
        process.communicate(timeout=2 * DEADLINE)
        return process.returncode

    def watches(self, resource: str = "[a-z]+") -> int:
        """Return the number of active watches of one resource; by default, of all resources."""
        code, text = self.request("GET", "/metrics")
        assert code == 200, text
        lines = re.findall(r'^apiserver_longrunning_requests{(.*verb="WATCH".*)} (\S+)$', text, re.MULTILINE)
        return round(sum(float(count) for labels, count in lines if re.search(f'resource="{resource}"', labels)))

    def end_watches(self) -> None:
        """End all watches with an error, by moving the position back."""
        self.command("seek?to=end")
        self.command("seek?to=start")

    def command(self, path: str) -> Any:
        """Send a command over HTTP, and return the resulting position."""
        code, answer = self.request("POST", f"/play/{path}")
        assert code == 200, answer
        return answer


@contextmanager
def mock_cluster(folder: Path, recording: Path, *arguments: str) -> Iterator[MockCluster]:
    """Serve a recording within the block; the server must log no errors, and must shut down gracefully."""
    server = MockCluster(folder, recording, *arguments)
    with server.running():
        yield server


@cache
def changes(recording: Path) -> Sequence[Change]:
    """Return the events of a recording."""
    return [entry for entry in RecordingReader(recording) if isinstance(entry, Change)]


@cache
def recorded(recording: Path, revision: int | None = None) -> dict[tuple[Resource, Key], Object]:
    """Return the objects that exist at a revision of a recording; the default is the end of the recording."""
    there: dict[tuple[Resource, Key], Object] = {}
    for change in changes(recording):
        place = (change.object.resource, change.object.key)
        if revision is not None and change.object.revision > revision:
            break
        if change.type is EventType.DELETED:
            del there[place]
        else:
            there[place] = change.object
    return there


def versions(recording: Path, resource: Resource, revision: int | None = None) -> dict[str, str]:
    """Return the resourceVersions of one resource's objects, by `namespace/name`."""
    there = recorded(recording, revision)
    return {str(key): str(obj.revision) for (of, key), obj in there.items() if of == resource}

"""Measures a second client, which repeatedly gets an object and writes 100 KB while a server is attacked.

The client runs in a separate process: the attacker uses much CPU time, which would delay a thread in the attacker's
process. The measurement of a GET includes the time for which threads of the server and of its worker processes waited
for a processor. This waiting time is subtracted, because the server is not responsible for other programs of the
machine.

`python -m tests.robustness.attack.judges.second_client HOST PORT PID` reads a token from its first line of
input, writes a line for each GET, and runs until it is killed.
"""

from __future__ import annotations

import http.client
import json
import os
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import cycle
from typing import NamedTuple

from tests.robustness.hostile.raw import PATIENCE
from tests.robustness.serving import ConfiguredServer

_LOOK_EVERY = 0.05
_PATH = "/api/v1/namespaces/kube-system"
_WRITTEN = "/api/v1/namespaces/default/configmaps?dryRun=All"
_BODY = json.dumps({"metadata": {"name": "of-another"}, "data": {"a": "x" * 100_000}})

GET, WRITE = "GET", "write"
"""The requests of the second client: a GET, and a write of 100 KB (a dry run, because the server's
data must not grow).
"""


class Measurement(NamedTuple):
    """The measurement of one GET or one write."""

    what: str
    took: float
    """Seconds from the beginning of the request to the end of its response."""
    starved: float
    """Seconds for which the server waited for a processor during the request: the maximum over all threads of the
    server.
    """
    late: float
    """Seconds for which the client's process waited for a processor during the request."""
    ended_at: float
    """The time at which the request ended, by a clock that all processes of the machine share."""

    @property
    def waited(self) -> float:
        """Seconds of the request for which the server is responsible."""
        return max(self.took - self.starved - self.late, 0.0)


class SecondClient:
    """The observations that the second client makes."""

    def __init__(self, notice: Callable[[Measurement], object]) -> None:
        """Call `notice` with each observation, on a separate thread."""
        self.looks = 0
        self.worst = {what: Measurement(what, 0.0, 0.0, 0.0, 0.0) for what in (GET, WRITE)}
        self._notice = notice

    def see(self, look: Measurement) -> None:
        """Record an observation."""
        self.looks += 1
        if look.waited > self.worst[look.what].waited:
            self.worst[look.what] = look
        self._notice(look)


@contextmanager
def second_client(
    server: ConfiguredServer, notice: Callable[[Measurement], object] = lambda look: None
) -> Iterator[SecondClient]:
    """Run the second client against a server; yield its observations."""
    seen, site = SecondClient(notice), server.site
    command = [sys.executable, "-m", __name__, site.host, str(site.port), str(server.pid)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    told = process.stdout

    def read() -> None:
        for line in told:
            what, *seconds = line.split()
            seen.see(Measurement(what, *map(float, seconds)))

    thread = threading.Thread(target=read, name="second_client")
    thread.start()
    try:
        process.stdin.write(f"{site.token}\n")
        process.stdin.flush()
        yield seen
    finally:
        process.kill()
        process.wait()
        thread.join()
        process.stdin.close()
        process.stdout.close()


def starved(*pids: int) -> dict[str, int]:
    """Return the nanoseconds for which each thread of the given processes has waited for a processor since the thread's
    start.
    """
    texts = ((task, _text(f"{task}/schedstat")) for pid in pids for task in _tasks(pid))
    return {task: int(text.split()[1]) for task, text in texts if text}


def children(pid: int) -> list[int]:
    """Return the child processes of a process."""
    return [int(child) for task in _tasks(pid) for child in _text(f"{task}/children").split()]


def _tasks(pid: int) -> list[str]:
    """Return the directories of the threads of a process in /proc."""
    folder = f"/proc/{pid}/task"
    try:
        return [f"{folder}/{each}" for each in os.listdir(folder)]
    except OSError:
        return []  # a process that has ended


def _text(path: str) -> str:
    try:
        with open(path, encoding="ascii") as file:
            return file.read()
    except OSError:
        return ""  # a thread that has ended


def _longest(before: dict[str, int], after: dict[str, int]) -> float:
    return max((since - before.get(task, 0) for task, since in after.items()), default=0) / 1e9


def main() -> None:
    """Send requests until this process is killed, and print the observations."""
    host, port, pid = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    headers = {"authorization": f"Bearer {sys.stdin.readline().strip()}"}
    trust = ssl.create_default_context()
    trust.check_hostname, trust.verify_mode = False, ssl.CERT_NONE
    connection = http.client.HTTPSConnection(host, port, timeout=PATIENCE, context=trust)
    for what in cycle((GET, GET, WRITE)):
        time.sleep(_LOOK_EVERY)
        pids = (pid, *children(pid))
        before, own, began = starved(*pids), starved(os.getpid()), time.monotonic()
        if what == GET:
            connection.request("GET", _PATH, headers=headers)
        else:
            connection.request("POST", _WRITTEN, _BODY, {**headers, "content-type": "application/json"})
        answer = connection.getresponse()
        answer.read()
        assert answer.status in (200, 201, 429), answer.status
        ended = time.monotonic()
        waited, late = _longest(before, starved(*pids)), _longest(own, starved(os.getpid()))
        sys.stdout.write(f"{what} {ended - began} {waited} {late} {ended}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()

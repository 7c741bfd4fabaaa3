"""Measures failovers by a real Patroni: `python -m tests.robustness.failover.patroni --rounds 2`.

The script runs two members with the configuration in examples/patroni/patroni.yml, and an etcd server. While a client
appends continuously, the script switches the primary, and then kills the primary together with its Patroni, `--rounds`
times. The script prints the duration of the longest append. The exit code is 1 if an acknowledged append is missing,
occurs twice, or has another revision than the acknowledged one.

The programs `patroni` and `etcd` must be on the PATH (Debian: apt install patroni etcd-server).
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import pwd
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import yaml

from ctrlmgr.api.object import Object
from ctrlmgr.clock import SystemClock
from ctrlmgr.eventlog import Author, EventType, Proposal, migrate_log, open_log, verify
from ctrlmgr.eventlog.sqllog import SQLLog
from ctrlmgr.testing.postgres import find_program
from tests.free_ports import free_port

EXAMPLE = Path(__file__).parents[3] / "examples" / "patroni" / "patroni.yml"
_DEADLINE = 180.0
_PROGRESS = 50
"""The number of appends that must succeed before and after each fault."""


class Member(NamedTuple):
    """The Patroni process of one machine, with its configuration and its address."""

    name: str
    file: Path
    data: Path
    api: int
    port: int


class PatroniCluster:
    """A cluster of an etcd server and two Patroni members; it is a context manager."""

    def __init__(self) -> None:
        self._account = pwd.getpwnam("postgres") if os.geteuid() == 0 else None
        self._root = Path(tempfile.mkdtemp(prefix="ctrlmgr-patroni-"))
        self._etcd = free_port()
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self.members = [self._member(number) for number in (1, 2)]
        for path in (self._root, *self._root.iterdir()):
            self._give(path)

    def __enter__(self) -> PatroniCluster:
        try:
            self._start_etcd()
            self.start(self.members[0])
            self.await_state(lambda roles: "leader" in roles.values())
            self.start(self.members[1])
            self.await_state(in_step)
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._close()

    def _give(self, path: Path) -> None:
        if self._account:
            os.chown(path, self._account.pw_uid, self._account.pw_gid)

    def _member(self, number: int) -> Member:
        name, api, port = f"postgres{number}", free_port(), free_port()
        config = yaml.safe_load(EXAMPLE.read_text())
        data, where, reached = self._root / name, f"127.0.0.1:{port}", f"127.0.0.1:{api}"
        config |= {"name": name, "restapi": {"listen": reached, "connect_address": reached}}
        config["etcd3"]["hosts"] = [f"127.0.0.1:{self._etcd}"]
        config["postgresql"] |= {
            "listen": where,
            "connect_address": where,
            "data_dir": str(data),
            "bin_dir": str(find_program("initdb").resolve().parent),
            "pgpass": str(self._root / f"{name}.pgpass"),
            "parameters": {"unix_socket_directories": str(self._root)},
        }
        file = self._root / f"{name}.yml"
        file.write_text(yaml.safe_dump(config))
        self._superuser = config["postgresql"]["authentication"]["superuser"]
        return Member(name, file, data, api, port)

    @property
    def url(self) -> str:
        """The URL of the log, which leads to the current primary."""
        places = ",".join(f"127.0.0.1:{member.port}" for member in self.members)
        return f"postgresql://{self._superuser['username']}:{self._superuser['password']}@{places}/postgres"

    def _start_etcd(self) -> None:
        ours, peers = f"http://127.0.0.1:{self._etcd}", f"http://127.0.0.1:{free_port()}"
        self._run("etcd", "etcd", "--data-dir", str(self._root / "etcd"), "--listen-client-urls", ours,
                  "--advertise-client-urls", ours, "--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers,
                  "--initial-cluster", f"default={peers}")  # fmt: skip

    def start(self, member: Member) -> None:
        """Start a member's Patroni, which starts its PostgreSQL."""
        self._run(member.name, "patroni", str(member.file))

    def _run(self, name: str, program: str, *arguments: str) -> None:
        path = shutil.which(program)
        assert path, f"{program} is not installed"
        with (self._root / f"{name}.log").open("ab") as log:
            self._processes[name] = subprocess.Popen(
                [path, *arguments],
                cwd=self._root,
                stdout=log,
                stderr=subprocess.STDOUT,
                user=self._account.pw_uid if self._account else None,
                group=self._account.pw_gid if self._account else None,
                extra_groups=[] if self._account else None,
            )

    def roles(self) -> dict[str, str]:
        """Return the role of each running member, as Patroni's REST API reports it."""
        for member in self.members:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{member.api}/cluster", timeout=5) as answer:
                    members = json.load(answer)["members"]
            except (OSError, ValueError):
                continue
            return {each["name"]: each["role"] for each in members if each["state"] in ("running", "streaming")}
        return {}

    def await_state(self, claim: Callable[[dict[str, str]], bool]) -> None:
        """Wait until the members have the expected states."""
        deadline = time.monotonic() + _DEADLINE
        while not claim(roles := self.roles()):
            assert time.monotonic() < deadline, f"the members stay {roles}"
            time.sleep(0.5)

    def primary(self) -> Member:
        """Return the leading member."""
        roles = self.roles()
        return next(member for member in self.members if roles.get(member.name) == "leader")

    def switch(self) -> None:
        """Switch the roles of the members in a planned way."""
        primary = self.primary()
        body = json.dumps({"leader": primary.name}).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"http://127.0.0.1:{primary.api}/switchover", body, headers, method="POST")
        urllib.request.urlopen(request, timeout=_DEADLINE).close()

    def crash(self) -> Member:
        """Kill the processes of the primary and its Patroni."""
        primary = self.primary()
        process = self._processes.pop(primary.name)
        process.kill()
        process.wait()
        os.kill(int((primary.data / "postmaster.pid").read_text().split()[0]), signal.SIGKILL)
        return primary

    def _close(self) -> None:
        for process in self._processes.values():
            process.terminate()
        for process in self._processes.values():
            process.wait(60)
        shutil.rmtree(self._root, ignore_errors=True)


def in_step(roles: dict[str, str]) -> bool:
    """Return whether the cluster has a primary and a synchronous standby."""
    return sorted(roles.values()) == ["leader", "sync_standby"]


class Appender:
    """A client that appends one event after the other, on a separate thread."""

    def __init__(self, log: SQLLog) -> None:
        self._log = log
        self.revisions: list[int] = []
        self.longest = 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        for number in itertools.count():
            if self._stop.is_set():
                return
            kind, expected = (EventType.MODIFIED, None) if number else (EventType.ADDED, 0)
            began = time.monotonic()
            [event] = self._log.append([Proposal(kind, _thing(number), expected)], author=Author("patroni", "tests"))
            self.longest = max(self.longest, time.monotonic() - began)
            self.revisions.append(event.revision)

    def progress(self) -> None:
        """Return after some more appends have succeeded."""
        wanted, deadline = len(self.revisions) + _PROGRESS, time.monotonic() + _DEADLINE
        while len(self.revisions) < wanted:
            assert time.monotonic() < deadline, "appends do not get through"
            time.sleep(0.05)

    def end(self) -> list[int]:
        """Stop the client, and return the acknowledged revisions."""
        self._stop.set()
        self._thread.join()
        return self.revisions


def _thing(number: int) -> Object:
    metadata = {"name": "thing", "namespace": "default", "uid": "uid"}
    fields: dict[str, Any] = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata}
    return Object.from_dict({**fields, "data": {"number": str(number)}})


def main() -> int:
    """Run the test with the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=1)
    rounds = parser.parse_args().rounds
    with PatroniCluster() as cluster:
        migrate_log(cluster.url, clock=SystemClock(), random=random.Random(1))
        log = open_log(cluster.url, clock=SystemClock(), random=random.Random(2), patience=60.0)
        assert isinstance(log, SQLLog)
        appender = Appender(log)
        for _ in range(rounds):
            _befall(cluster, appender)
        acknowledged = appender.end()
        stored = [event.revision for event in log.scan()]
        verify(log)
        log.close()
    if stored != acknowledged:
        _say(f"{len(acknowledged)} were acknowledged, {len(stored)} are there")
        return 1
    _say(f"all {len(stored)} appends are there once, at the revisions they were acknowledged with")
    return 0


def _befall(cluster: PatroniCluster, appender: Appender) -> None:
    for name, event in (("switched", cluster.switch), ("killed", cluster.crash)):
        appender.progress()
        appender.longest = 0.0
        gone = event()
        appender.progress()
        _say(f"{name}: the longest append took {appender.longest:.1f} s")
        if gone is not None:
            cluster.start(gone)
        cluster.await_state(in_step)


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())

"""Measures the memory of caches: the growth of a process that loads objects into informers, per JSON byte.

Another process writes the log, an SQLite file, so that only loading makes the measured process grow: the log's page
cache, the stores of the informers, and garbage. The pods resemble the pods of a Deployment, about 1 KB of JSON each.
The goal applies to the growth after loading. The benchmark also prints the growth after a controller has read the
labels of every object, which keeps the metadata of each object decoded.
"""

from __future__ import annotations

import gc
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from bench.report import Claim, report, run
from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import PODS
from ctrlmgr.clock import SystemClock
from ctrlmgr.eventlog import Author, EventType, Proposal, open_log
from ctrlmgr.informer import EventWindow, Informers

OBJECTS = 100_000
NAMESPACES = 50
APPS = 200
BATCH = 1000
GOAL = 3.0
_MEGABYTE = 1e6


def pod(number: int) -> Object:
    """Return a pod of about 1 KB, which is a replica of one of the apps."""
    app = f"app-{number % APPS}"
    replica_set = f"{app}-6f7b8c9d5"
    return Object.from_dict(
        {
            "kind": "Pod",
            "apiVersion": "v1",
            "metadata": {
                "name": f"{replica_set}-{number:05x}",
                "namespace": f"team-{number % NAMESPACES}",
                "uid": f"{number:08x}-0000-4000-8000-000000000000",
                "creationTimestamp": "2026-01-01T00:00:00Z",
                "labels": {"app": app, "tier": "backend", "pod-template-hash": "6f7b8c9d5"},
                "ownerReferences": [
                    {
                        "apiVersion": "apps/v1",
                        "kind": "ReplicaSet",
                        "name": replica_set,
                        "uid": f"{number % APPS:08x}-1111-4000-8000-000000000000",
                        "controller": True,
                        "blockOwnerDeletion": True,
                    }
                ],
            },
            "spec": {
                "containers": [
                    {
                        "name": "main",
                        "image": f"registry.example.com/{app}:1.2.3",
                        "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
                        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
                    }
                ],
                "nodeName": f"node-{number % 100}",
            },
            "status": {
                "phase": "Running",
                "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:05Z"}],
                "hostIP": f"10.0.0.{number % 100}",
                "podIP": f"10.1.{number % 250}.{number % 251}",
                "podIPs": [{"ip": f"10.1.{number % 250}.{number % 251}"}],
                "startTime": "2026-01-01T00:00:01Z",
            },
        }
    )


def write(folder: Path) -> int:
    """Write the pods into a new log; return the total size of the pods as JSON."""
    log = open_log(_url(folder), clock=SystemClock(), random=random.Random(1), migrate=True)
    total = 0
    for first in range(0, OBJECTS, BATCH):
        objects = [pod(number) for number in range(first, first + BATCH)]
        log.append([Proposal(EventType.ADDED, obj, 0) for obj in objects], author=Author("bench"))
        total += sum(len(obj.body) for obj in objects)
    log.close()
    return total


def load(folder: Path) -> tuple[int, int, float]:
    """Load the pods into an informer; return the growth in bytes before and after reading labels, and the seconds."""
    clock = SystemClock()
    log = open_log(_url(folder), clock=clock, random=random.Random(2))
    informers = Informers(log, EventWindow(log, clock=clock), clock=clock)
    pods = informers.informer(PODS)
    pods.add_label_index()
    gc.collect()
    before, began = _resident(), time.perf_counter()
    informers.sync()
    took = time.perf_counter() - began
    loaded = _resident() - before
    assert sum(1 for obj in pods.lister.list() if obj.labels) == OBJECTS
    read = _resident() - before
    log.close()
    return loaded, read, took


def _url(folder: Path) -> str:
    return f"sqlite:///{folder}/log.db"


def _resident() -> int:
    """Return the resident bytes of this process (Linux)."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


_STEPS: dict[str, Callable[[Path], object]] = {"write": write, "load": load}


def _in_fresh_process(step: str, folder: Path) -> list[float]:
    """Run a step of this benchmark in a new interpreter; return the numbers that it prints."""
    command = [sys.executable, "-m", "bench.memory", step, str(folder)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [float(word) for word in output.strip("()\n").split(", ")]


def main(arguments: Sequence[str]) -> int:
    """Run one step of the benchmark if the arguments name one; otherwise run all steps."""
    if arguments and arguments[0] in _STEPS:
        print(_STEPS[arguments[0]](Path(arguments[1])))
        return 0
    with tempfile.TemporaryDirectory() as name:
        [json_bytes] = _in_fresh_process("write", Path(name))
        loaded, read, took = _in_fresh_process("load", Path(name))
    print(f"{OBJECTS} objects of {json_bytes / OBJECTS:.0f} bytes, loaded in {took:.2f} s")
    limit = json_bytes / _MEGABYTE
    print(
        f"once every object's labels have been read: {read / _MEGABYTE:.0f} MB, {read / json_bytes:.2f} times the JSON"
    )
    claim = Claim(
        "memory of a process that has loaded 100,000 objects", loaded / _MEGABYTE, limit, GOAL, "MB", at_most=True
    )
    return report([claim], arguments)


if __name__ == "__main__":
    run(main, __doc__)

"""Records scenarios: plays them on `ctrlmgr serve` and writes its log with checkpoints as a recording.

    python -m tests.scenario_recordings [--part workloads] REGEX FILE

The scenarios are stored beside the conformance corpora (see `tests.conformance`); they are played one after the other,
so that the cluster is idle at each checkpoint. The recording does not contain resources that no replayed controller
reads.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Revision
from ctrlmgr.clock import SystemClock
from ctrlmgr.eventlog.opening import open_log_for_reading
from ctrlmgr.recording.capture.export import history
from ctrlmgr.recording.format import RecordingWriter
from tests.conformance import PARTS, Part, Server, serving, write_tokens

_OPTIONS = ("--pvclaimbinder-sync-period",)
"""The options of replayed controllers that parts set."""

KINDS = frozenset(
    {
        *("controllerrevisions", "cronjobs", "daemonsets", "deployments", "jobs", "limitranges", "namespaces", "nodes"),
        "horizontalpodautoscalers",
        *("persistentvolumeclaims", "poddisruptionbudgets", "pods", "priorityclasses", "replicasets"),
        *("replicationcontrollers", "resourcequotas", "statefulsets"),
        *("persistentvolumes", "storageclasses", "volumeattachments", "volumeattributesclasses", "csidrivers"),
        *("csinodes", "deviceclasses", "resourceclaims", "resourceclaimtemplates", "resourceslices", "podgroups"),
    }
)
"""The plural names of the recorded resources."""


def main() -> int:
    """Play the scenarios, and write the recording."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--part", default="workloads", choices=["scenarios", "workloads", "cluster"])
    parser.add_argument("only", metavar="REGEX")
    parser.add_argument("file", metavar="FILE", type=Path)
    given = parser.parse_args()
    record(PARTS[given.part], given.only, given.file)
    return 0


def record(part: Part, only: str, path: Path) -> None:
    """Play the scenarios of a part that match a pattern on a new server, and write the recording.

    A replay runs controllers with their default options, so the server does, too.
    """
    part = replace(part, flags=[each for each in part.flags if not each.startswith(_OPTIONS)])
    with tempfile.TemporaryDirectory() as directory:
        work = Path(directory)
        database = f"sqlite:///{work}/ctrlmgr.db"
        write_tokens(part, work)
        with serving(part, database, work) as server:
            checkpoints = play(part, server, only)
        write(database, checkpoints, path)


def play(part: Part, server: Server, only: str) -> list[tuple[str, Revision]]:
    """Play the scenarios, and return the checkpoints, each with the revision of the log at that time."""
    recordings = Path(os.environ.get("CONFORMANCE", "../shared/conformance")).resolve()
    sys.path.insert(0, str(recordings))
    drive: Any = importlib.import_module("drive")
    scenarios = drive.load_scenarios([str(each) for each in sorted((recordings / part.data).glob("*.json.gz"))], only)
    client = drive.Client(server.url, server.token, str(server.authority))
    checkpoints: list[tuple[str, Revision]] = []

    def note(name: str) -> None:
        checkpoints.append((name, int(client.get("/api/v1/nodes")[1]["metadata"]["resourceVersion"])))

    scale = float(os.environ.get("SETTLE_SCALE", "0.2"))
    drive.run_all(client, scenarios, scale=scale, cleanup=False, on_checkpoint=note)
    return checkpoints


def write(database: str, checkpoints: Sequence[tuple[str, Revision]], path: Path) -> None:
    """Write a log as a recording, in which each checkpoint is at its revision."""
    log = open_log_for_reading(database, clock=SystemClock(), random=Random(0))
    waiting = [*checkpoints]
    try:
        with RecordingWriter(path) as writer:
            for change in history(log, _is_recorded):
                while waiting and waiting[0][1] < change.object.revision:
                    writer.checkpoint(*waiting.pop(0))
                writer.change(*change)
            for each in waiting:
                writer.checkpoint(*each)
    finally:
        log.close()


def _is_recorded(obj: Object) -> bool:
    return obj.resource.plural in KINDS


if __name__ == "__main__":
    sys.exit(main())

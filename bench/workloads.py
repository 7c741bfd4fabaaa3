"""Measures Deployments and Jobs of many pods, through a real server over TLS.

- A Deployment is scaled from nothing to 1,000 pods. The time until its ReplicaSet has created all pods is compared with
  bare creates of the same pods by 16 clients in the same run. The benchmark counts the events per pod.
- With kubelets that respond immediately, a Deployment of 500 pods is rolled out again, and a Job runs 1,000
  completions, 100 at a time. For the rollout and the Job, the benchmark counts the events per pod and prints the
  duration.
- The benchmark measures the resident memory of the server per pod.
- Another process replays the large recording with all controllers; the result is in events per second.

Run `python -m bench.workloads [--pods N] [--check]`; the kubelets run on the same core as the clients.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.replay import RECORDINGS
from bench.report import Claim, report
from bench.support.https_load import Load, measure
from bench.support.served import CLIENT_CORE, Served, on_core, serving
from ctrlmgr import logging
from ctrlmgr.recording.format import RecordingReader
from ctrlmgr.recording.replay_stage import open_replay_log
from ctrlmgr.recording.replayer import Replay
from ctrlmgr.recording.virtual_clock import ReplayClock

CLIENTS = 16
CORE = "/api/v1/namespaces/{}/pods"
DEPLOYMENTS = "/apis/apps/v1/namespaces/{}/deployments"
JOBS = "/apis/batch/v1/namespaces/{}/jobs"
REPLAYED_A_SECOND = 15_000
SPEC = {"containers": [{"name": "main", "image": "app:1"}]}


def template(image: str = "app:1", **spec: Any) -> dict[str, Any]:
    """Return a pod template."""
    containers = [{"name": "main", "image": image}]
    return {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": containers, **spec}}


def decoded(served: Served, path: str) -> Any:
    """Send a GET for a path; return the decoded response."""
    return json.loads(served.open("GET", path))


def create(served: Served, path: str, body: object) -> None:
    """Create an object."""
    served.open("POST", path, json.dumps(body).encode())


def patch(served: Served, path: str, body: object) -> None:
    """Change an object by a merge patch."""
    with on_core(CLIENT_CORE):
        sent = [served.request("PATCH", path, json.dumps(body), "application/merge-patch+json")]
        measure(Load(served.host, served.port, served.authority, 1, 60.0, sent, 0.0, 200, once=True))


def namespace(served: Served, name: str) -> None:
    """Create a namespace and wait until pods can be created in it."""
    create(served, "/api/v1/namespaces", {"metadata": {"name": name}})
    until(lambda: bool(decoded(served, f"/api/v1/namespaces/{name}/serviceaccounts")["items"]))


def revision(served: Served) -> int:
    """Return the number of events in the log."""
    return int(decoded(served, "/api/v1/nodes")["metadata"]["resourceVersion"])


def until(claim: Callable[[], bool]) -> float:
    """Wait until a condition is true; return the seconds."""
    began = time.perf_counter()
    while not claim():
        time.sleep(0.02)
    return time.perf_counter() - began


def bare_creates(served: Served, pods: int) -> float:
    """Create the same number of bare pods; return the duration in seconds."""
    namespace(served, "bare")
    body = json.dumps({"metadata": {"generateName": "web-", "labels": {"app": "bare"}}, "spec": SPEC})
    requests = [served.request("POST", CORE.format("bare"), body) for _ in range(pods)]
    with on_core(CLIENT_CORE):
        load = Load(served.host, served.port, served.authority, CLIENTS, 3600.0, requests, 0.0, 201, once=True)
        return measure(load).seconds


@contextmanager
def kubelets(served: Served, phase: str) -> Iterator[None]:
    """Run simulated kubelets while the block runs."""
    command = [
        sys.executable,
        "-m",
        "bench.support.kubelets",
        served.host,
        str(served.port),
        served.authority,
        served.token,
    ]
    with (
        on_core(CLIENT_CORE),
        subprocess.Popen([*command, phase], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process,
    ):
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            yield
        finally:
            process.terminate()


class Bench:
    """One server, and the measurements that are made with it."""

    def __init__(self, served: Served, pods: int) -> None:
        """Prepare measurements with this number of pods."""
        self._served = served
        self._pods = pods

    def deployment(self) -> list[Claim]:
        """Scale a Deployment from nothing to all pods, without other load."""
        served, pods = self._served, self._pods
        before = served.resident()
        bare = bare_creates(served, pods)
        memory = (served.resident() - before) / pods
        namespace(served, "made")
        began, spec = revision(served), {"replicas": pods, "selector": {"matchLabels": {"app": "web"}}}
        create(
            served, DEPLOYMENTS.format("made"), {"metadata": {"name": "web"}, "spec": {**spec, "template": template()}}
        )
        took = until(lambda: self._status("made").get("replicas") == pods)
        writes = (revision(served) - began) / pods
        return [
            Claim(f"a Deployment of {pods} pods, to bare creates", took * 1e3, bare * 1e3, 2.0, "ms", at_most=True),
            Claim("events a pod of it, in hundredths", writes * 100, 100, 1.5, "events", at_most=True),
            Claim("memory a pod, bytes", memory, 100_000, 1.0, "bytes", at_most=True),
        ]

    def _status(self, where: str) -> dict[str, Any]:
        return dict(decoded(self._served, f"{DEPLOYMENTS.format(where)}/web").get("status") or {})

    def rollout(self) -> list[Claim]:
        """Give a Deployment with half of the pods another pod template, and measure the rollout."""
        served, pods = self._served, self._pods // 2
        path = f"{DEPLOYMENTS.format('made')}/web"
        patch(served, path, {"spec": {"replicas": pods}})
        with kubelets(served, "Running"):
            settled = {"availableReplicas": pods, "replicas": pods}
            started = until(lambda: settled.items() <= self._status("made").items())
            began = revision(served)
            patch(served, path, {"spec": {"template": template("app:2")}})
            settled["updatedReplicas"] = pods
            took = until(lambda: settled.items() <= self._status("made").items())
            writes = (revision(served) - began) / pods
        print(f"{pods} pods became ready in {started:.1f} s, and were rolled out in {took:.1f} s")
        # Each new pod is created, bound and reported, and each old pod is terminated and deleted, which are five
        # writes.
        return [Claim(f"events a pod of a rollout of {pods}, to five", writes, 5, 1.5, "events", at_most=True)]

    def job(self) -> list[Claim]:
        """Run a Job whose pods succeed immediately."""
        served, pods = self._served, self._pods
        namespace(served, "job")
        spec = {"completions": pods, "parallelism": pods // 10, "template": template(restartPolicy="Never")}
        with kubelets(served, "Succeeded"):
            began = revision(served)
            create(served, JOBS.format("job"), {"metadata": {"name": "job"}, "spec": spec})
            path = f"{JOBS.format('job')}/job"
            took = until(lambda: "completionTime" in (decoded(served, path).get("status") or {}))
            writes = (revision(served) - began) / pods
        print(f"a Job of {pods} completions, {pods // 10} at a time, took {took:.1f} s")
        # Each pod is created, bound, reported and released, which are four writes.
        return [Claim(f"events a pod of a Job of {pods}, to four", writes, 4, 1.5, "events", at_most=True)]


def replay_rate(path: Path) -> float:
    """Replay a recording with all controllers; return events per second.

    Raises SystemExit if the replayed controllers' writes differ from the recording.
    """
    logging.configure(level="info", format="console")  # as the command `ctrlmgr replay` does
    clock = ReplayClock()
    found = Replay(open_replay_log("memory:", clock), clock).run(RecordingReader(path))
    if found.divergences:
        raise SystemExit(f"{path.name}: {len(found.divergences)} divergences")
    return found.rate


def replay() -> list[Claim]:
    """Replay the largest recording that exists; return the results as claims."""
    path = next(path for path in RECORDINGS if path.exists())
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as alone:
        rate = alone.submit(replay_rate, path).result()
    return [Claim(f"replay with all controllers, {path.name}", rate, REPLAYED_A_SECOND, 1.0, "events/s")]


def main(arguments: Sequence[str]) -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, default=1000)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args(arguments)
    # the controller for lost nodes is off, because the pods' node does not exist
    without = ("--controllers", "*,-pod-garbage-collector")
    with tempfile.TemporaryDirectory() as name, serving(Path(name), *without) as served:
        bench = Bench(served, options.pods)
        claims = [*bench.deployment(), *bench.rollout(), *bench.job()]
    claims += replay()
    return report(claims, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

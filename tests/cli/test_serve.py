"""Tests of `ctrlmgr serve` as a process: start, work, and graceful stop."""

from __future__ import annotations

import http.client
import json
import os
import random
import re
import signal
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import ENDPOINTS, Key
from ctrlmgr.clock import SystemClock
from ctrlmgr.controllers import registry
from ctrlmgr.engine.features.gates import is_on
from ctrlmgr.eventlog import Author, EventLog, EventType, Proposal, open_log

DEADLINE = 30.0

HOOKS = (
    "start-apiextensions-controllers",
    "start-cluster-authentication-info-controller",
    "bootstrap-controller",
    "start-kube-apiserver-identity-lease-controller",
    "peer-endpoint-reconciler-controller",
    "start-kube-apiserver-identity-lease-garbage-collector",
    "rbac/bootstrap-roles",
    "scheduling/bootstrap-system-priority-classes",
    "priority-and-fairness-config-producer",
    "kube-apiserver-autoregistration",
    "apiservice-status-remote-available-controller",
    "generic-apiserver-start-informers",
    "start-apiextensions-informers",
    "crd-informer-synced",
    "start-kube-aggregator-informers",
    "start-apiserver-admission-initializer",
    "start-system-namespaces-controller",
    "start-kubernetes-service-cidr-controller",
    "start-service-ip-repair-controllers",
    "aggregator-reload-proxy-client-cert",
    "apiservice-discovery-controller",
    "apiservice-openapi-controller",
    "apiservice-openapiv3-controller",
    "apiservice-registration-controller",
    "apiservice-status-local-available-controller",
    "start-legacy-token-tracking-controller",
    "storage-object-count-tracker-hook",
    "priority-and-fairness-config-consumer",
    "priority-and-fairness-filter",
)
"""The names of the post-start hooks, which are those of kube-apiserver."""


class RunningServe:
    """A running `ctrlmgr serve`."""

    def __init__(self, process: subprocess.Popen[str], url: str, folder: Path) -> None:
        self.process = process
        self.url = url
        self.folder = folder

    def get(self, path: str) -> tuple[int, str]:
        context = ssl.create_default_context(cafile=str(self.folder / "pki" / "ca.crt"))
        token = yaml.safe_load((self.folder / "kubeconfig").read_text())["users"][0]["user"]["token"]
        connection = http.client.HTTPSConnection(urlsplit(self.url).netloc, timeout=DEADLINE, context=context)
        try:
            connection.request("GET", path, headers={"Authorization": f"Bearer {token}"})
            response = connection.getresponse()
            return response.status, response.read().decode()
        finally:
            connection.close()

    def become_ready(self) -> None:
        until(lambda: self.get("/readyz")[0] == 200)

    def end(self, number: signal.Signals) -> tuple[int, str]:
        self.process.send_signal(number)
        _, err = self.process.communicate(timeout=DEADLINE)
        return self.process.returncode, err


def until(claim: Any) -> None:
    """Wait for another process by polling, because a test cannot await an event of another process here."""
    deadline = time.monotonic() + DEADLINE
    while not claim():
        assert time.monotonic() < deadline, "it did not come true in time"
        time.sleep(0.02)


@contextmanager
def serving(folder: Path, *arguments: str, **environment: str) -> Iterator[RunningServe]:
    command = [sys.executable, "-m", "ctrlmgr", "serve", "--listen", "127.0.0.1:0", *arguments]
    variables = {**os.environ, "CTRLMGR_DATA_DIR": str(folder), "PYTHONUNBUFFERED": "1", **environment}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=variables, cwd=Path(__file__).parents[2]
    ) as process:
        try:
            assert process.stdout is not None
            first = process.stdout.readline()
            found = re.search(r"https://\S+", first)
            assert found, (first, process.stderr.read() if process.stderr else "")
            yield RunningServe(process, found[0], folder)
        finally:
            process.kill()


def test_serve_writes_a_kubeconfig_for_its_owner_only_and_reuses_it(tmp_path: Path) -> None:
    with serving(tmp_path) as served:
        served.become_ready()
        path = tmp_path / "kubeconfig"
        assert path.stat().st_mode & 0o777 == 0o600
        assert yaml.safe_load(path.read_text())["clusters"][0]["cluster"]["server"] == served.url
        token = path.read_text()
        assert served.end(signal.SIGTERM)[0] == 0
    assert path.stat().st_mode & 0o777 == 0o600
    with serving(tmp_path) as served:
        served.become_ready()
        assert path.read_text().replace(served.url, "") == re.sub(r"https://\S+", "", token)


def server_of(kubeconfig: Path) -> str:
    return str(yaml.safe_load(kubeconfig.read_text())["clusters"][0]["cluster"]["server"])


def test_a_second_server_in_a_directory_keeps_the_kubeconfig_of_the_running_one(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    with serving(tmp_path) as first:
        first.become_ready()
        with pytest.raises(AssertionError) as refused, serving(tmp_path):
            pass
        assert f"{tmp_path} is served by another process, on {first.url}; --join serves it" in str(refused.value)
        with serving(tmp_path, "--join") as second:
            second.become_ready()
            own = tmp_path / f"kubeconfig-{urlsplit(second.url).port}"
            assert (server_of(path), server_of(own)) == (first.url, second.url)
            assert own.stat().st_mode & 0o777 == 0o600
            code, said = second.end(signal.SIGTERM)
            assert (code, "kubeconfig belongs to another server" in said, str(own) in said) == (0, True, True)
            assert not own.exists(), "a token that is of no more use"
        assert first.get("/readyz")[0] == 200
        first.process.kill()
        first.process.wait(DEADLINE)
    with serving(tmp_path) as third:  # regardless of the outcome of the previous request
        third.become_ready()
        assert server_of(path) == third.url
        assert third.end(signal.SIGTERM)[0] == 0


def append(log: EventLog, kind: str, name: str, **fields: Any) -> None:
    metadata = {"name": name, "namespace": "" if kind == "Namespace" else "shop", "uid": f"uid-of-{name}"}
    labels = {"labels": {"app": "web"}} if kind == "Pod" else {}
    obj = Object.from_dict({"kind": kind, "apiVersion": "v1", "metadata": {**metadata, **labels}, **fields})
    log.append([Proposal(EventType.ADDED, obj, 0)], author=Author("alice"))


@contextmanager
def opened(folder: Path, url: str | None = None) -> Iterator[EventLog]:
    url = url or f"sqlite:///{folder / 'ctrlmgr.db'}"
    log = open_log(url, clock=SystemClock(), random=random.Random(1), migrate=True)
    try:
        yield log
    finally:
        log.close()


def test_serve_answers_and_stops_on_sigterm(tmp_path: Path) -> None:
    with serving(tmp_path) as served:
        served.become_ready()
        status, text = served.get("/readyz?verbose")
        enabled = registry.enabled(["*"]).descriptors
        running = [each.name for each in enabled if all(is_on(gate) for gate in each.feature_gates)]
        assert (status, text) == (
            200,
            "[+]ping ok\n[+]log ok\n[+]informer-sync ok\n[+]informer-handlers ok\n"
            "[+]autoregister-completion ok\n"
            + "".join(f"[+]poststarthook/{name} ok\n" for name in HOOKS)
            + "[+]leader-election ok\n"
            + "".join(f"[+]controller/{name} ok\n" for name in running)
            + "[+]shutdown ok\nreadyz check passed\n",
        )
        assert 'workqueue_depth{name="endpoints-controller",priority="0"} 0' in served.get("/metrics")[1]
        code, err = served.end(signal.SIGTERM)
    assert code == 0, err
    assert "stopped" in err


def test_serve_stops_on_ctrl_c(tmp_path: Path) -> None:
    with serving(tmp_path) as served:
        served.become_ready()
        assert served.end(signal.SIGINT)[0] == 0


def become_a_service_with_a_pod(log: EventLog) -> None:
    append(log, "Namespace", "shop")
    append(log, "Service", "web", spec={"selector": {"app": "web"}, "clusterIP": "10.0.0.1", "ports": [{"port": 80}]})
    ready = {"phase": "Running", "podIP": "10.1.0.1", "podIPs": [{"ip": "10.1.0.1"}]}
    append(log, "Pod", "web-1", status={**ready, "conditions": [{"type": "Ready", "status": "True"}]})


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'shared.db'}"
    return str(request.getfixturevalue("postgres_url"))


def test_serve_reconciles_events_of_other_processes(tmp_path: Path, database: str) -> None:
    key = Key("shop", "web")
    with serving(tmp_path, "--database", database) as served, opened(tmp_path, database) as log:
        served.become_ready()
        become_a_service_with_a_pod(log)
        until(lambda: (found := log.get(ENDPOINTS, key)) is not None and b"10.1.0.1" in found.body)
        assert served.end(signal.SIGTERM)[0] == 0
        written = [event for event in log.events_after(0, resource=ENDPOINTS) if event.key == key]
        assert written[-1].actor == "system:serviceaccount:kube-system:endpoint-controller"
        cause = log.reconcile(written[-1].reconcile)
        assert cause is not None
        assert cause.cause.triggers


def test_a_restarted_server_reconciles_events_it_missed(tmp_path: Path, database: str) -> None:
    with serving(tmp_path, "--database", database) as served:
        served.become_ready()
        served.process.kill()
        served.process.wait(DEADLINE)
    with opened(tmp_path, database) as log:
        become_a_service_with_a_pod(log)
        append(log, "Endpoints", "leftover", subsets=[])
        with serving(tmp_path, "--database", database) as served:
            until(lambda: (found := log.get(ENDPOINTS, Key("shop", "web"))) and b"10.1.0.1" in found.body)
            until(lambda: log.get(ENDPOINTS, Key("shop", "leftover")) is None)
            assert served.end(signal.SIGTERM)[0] == 0


def test_a_second_signal_ends_serve_at_once(tmp_path: Path) -> None:
    with serving(tmp_path) as served:
        served.become_ready()
        served.process.send_signal(signal.SIGTERM)
        code, _ = served.end(signal.SIGTERM)
        assert code in (0, 128 + signal.SIGTERM)  # 0: the first process was faster


def test_a_disabled_controller_does_not_run(tmp_path: Path) -> None:
    with serving(tmp_path, "--controllers", "*,-endpoints-controller") as served:
        served.become_ready()
        assert "endpoints-controller" not in served.get("/readyz?verbose")[1]


def test_serve_applies_retention_rules(tmp_path: Path) -> None:
    with opened(tmp_path) as log:
        append(log, "ConfigMap", "a")
        before = log.events_after(0)[0].object
        changed = Object.from_dict({**before.to_dict(), "data": {"key": "1"}})
        log.append([Proposal(EventType.MODIFIED, changed, 1)], author=Author("alice"))
        rules = {
            "CTRLMGR_COMPACTION_RESOURCES": "{ configmaps = { keep = 1 } }",
            "CTRLMGR_COMPACTION_MIN_AGE": "0",
            "CTRLMGR_COMPACTION_MIN_REVISIONS": "0",
        }
        with serving(tmp_path, **rules) as served:
            served.become_ready()
            until(lambda: [event.revision for event in log.scan() if event.object.name == "a"] == [2])
            assert served.end(signal.SIGTERM)[0] == 0


def test_log_lines_are_json_if_configured(tmp_path: Path) -> None:
    where = ["--listen", "127.0.0.1:0", "--database", "memory:", "--data-dir", str(tmp_path)]
    command = [sys.executable, "-m", "ctrlmgr", "serve", *where]
    with subprocess.Popen(
        [*command, "--log-format", "json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        lines = (json.loads(line) for line in process.stderr)
        serving = next(line for line in lines if line["event"] == "serving")
        process.send_signal(signal.SIGTERM)
        out, rest = process.communicate(timeout=DEADLINE)
    assert serving["url"].startswith("https://127.0.0.1:")
    events = [json.loads(line)["event"] for line in rest.splitlines()]
    assert (events[0], events[-1]) == ("stopping", "stopped")
    assert (process.returncode, out) == (0, "")


def test_an_error_about_a_log_in_memory_suggests_alternatives(tmp_path: Path) -> None:
    where = ["--listen", "127.0.0.1:0", "--database", "memory:", "--data-dir", str(tmp_path)]
    command = [sys.executable, "-m", "ctrlmgr", "serve", *where]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        said = [line for line in iter(process.stdout.readline, "  stop it with Ctrl-C\n") if line]
        process.send_signal(signal.SIGTERM)
        assert process.wait(DEADLINE) == 0
    advice = next(line for line in said if "follow its events" in line)
    assert advice.split("events", 1)[1].strip().startswith("kubectl get events -A --watch")
    assert not any("--database" in line for line in said)

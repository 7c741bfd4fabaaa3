"""Tests of extenders: a small HTTP server filters and scores nodes, takes part in preemption, and binds pods."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import pytest

from ctrlmgr.controllers.scheduler import Options
from ctrlmgr.controllers.scheduler.configuration import read_configuration
from ctrlmgr.controllers.scheduler.controller import build
from ctrlmgr.engine.calls.call import Call, Reply
from ctrlmgr.errors import SettingsError
from ctrlmgr.threads import start
from tests.controllers.scheduler.test_scheduler import SchedulerCluster
from tests.controllers.scheduler.test_scheduler_configuration import written
from tests.controllers.stage_context import StageContext
from tests.controllers.worked_stage import WorkedStage

SKIPPED = "no new claims to deallocate"
GPU = [{"name": "c", "image": "i", "resources": {"limits": {"example.com/gpu": "1"}}}]


class ExtenderServer:
    """An HTTP server that gives prepared answers by verb, and records the requests."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {}
        self.requests: list[tuple[str, bytes]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                verb = self.path.removeprefix("/base/")
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.requests.append((verb, body))
                assert self.headers["Content-Type"] == "application/json"
                answer = outer.answers.get(verb)
                self.send_response(200 if answer is not None else 500)
                self.end_headers()
                self.wfile.write(json.dumps(answer).encode())

            def log_message(self, *_: Any) -> None:
                return

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/base/"

    def sent(self, verb: str) -> list[dict[str, Any]]:
        return [json.loads(body) for each, body in self.requests if each == verb]


@pytest.fixture
def server() -> Iterator[ExtenderServer]:
    server = ExtenderServer()
    thread = start("extender", server.server.serve_forever)
    yield server
    server.server.shutdown()
    server.server.server_close()
    thread.join()


def send(call: Call) -> Reply:
    request = Request(call.url, call.body, dict(call.credentials.headers))
    try:
        with urlopen(request, timeout=call.timeout) as answer:
            return Reply(answer.status, "application/json", answer.read())
    except HTTPError as error:
        return Reply(error.code)
    except URLError as error:
        return Reply(problem=str(error.reason))


class Extended(SchedulerCluster):
    """Two nodes, and a scheduler with extenders."""

    def __init__(self, folder: Path, *extenders: dict[str, Any]) -> None:
        self.file = written(folder, extenders=[*extenders])
        self.stage = WorkedStage(self._build, caller=send)
        self.stage.namespace("a")
        for name in ("n1", "n2"):
            self.node(name)

    def _build(self, stage: WorkedStage) -> Any:
        self.context = StageContext(stage)
        return build(self.context, Options(scheduler_config=str(self.file)))

    def condition(self, name: str) -> tuple[str, str]:
        found = next(each for each in self.status(name)["conditions"] if each["type"] == "PodScheduled")
        return found.get("reason", ""), found.get("message", "")


def test_an_extender_filters_nodes(tmp_path: Path, server: ExtenderServer) -> None:
    cluster = Extended(tmp_path, {"urlPrefix": server.url, "filterVerb": "filter", "nodeCacheCapable": True})
    server.answers["filter"] = {"NodeNames": ["n2"], "FailedNodes": {"n1": "too hot"}}
    cluster.pod("p")
    assert cluster.places() == {"p": "n2"}
    (sent,) = server.sent("filter")
    assert [*sent] == ["Pod", "Nodes", "NodeNames"]
    assert (sent["Nodes"], sorted(sent["NodeNames"])) == (None, ["n1", "n2"])
    assert [*sent["Pod"]] == ["metadata", "spec", "status"]
    assert sent["Pod"]["metadata"]["name"] == "p"
    assert "managedFields" not in sent["Pod"]["metadata"]


def test_the_reasons_of_an_extender_are_part_of_the_message(tmp_path: Path, server: ExtenderServer) -> None:
    cluster = Extended(tmp_path, {"urlPrefix": server.url, "filterVerb": "filter"})
    server.answers["filter"] = {
        "nodes": {"items": []},
        "failedNodes": {"n1": "too hot"},
        "failedAndUnresolvableNodes": {"n2": "too old"},
        "error": None,
    }
    cluster.pod("p")
    assert cluster.places() == {"p": ""}
    vain = (
        "preemption: 0/2 nodes are available: 1 No preemption victims found for incoming pod, "
        "1 Preemption is not helpful for scheduling."
    )
    message = f"0/2 nodes are available: 1 too hot, 1 too old. {SKIPPED}, {vain}"
    assert cluster.condition("p") == ("Unschedulable", message)
    (sent,) = server.sent("filter")
    assert sent["NodeNames"] is None
    assert [*sent["Nodes"]] == ["metadata", "items"]
    assert sorted(each["metadata"]["name"] for each in sent["Nodes"]["items"]) == ["n1", "n2"]
    server.answers["filter"] = {"Nodes": {"items": [{"metadata": {"name": "n1"}}]}}
    cluster.stage.pass_by(1)
    cluster.node("n3")
    assert cluster.places() == {"p": "n1"}, "every event may help a pod that an extender refused"


def test_an_error_of_an_extender_fails_the_pod_until_its_backoff_is_over(
    tmp_path: Path, server: ExtenderServer
) -> None:
    cluster = Extended(tmp_path, {"urlPrefix": server.url, "filterVerb": "filter"})
    cluster.pod("p")
    assert cluster.places() == {"p": ""}
    url = f"{server.url}filter"
    assert cluster.condition("p") == ("SchedulerError", f"failed filter with extender at URL {url}, code 500")
    server.answers["filter"] = {"Error": "no license"}
    cluster.stage.pass_by(1)
    assert cluster.condition("p") == ("SchedulerError", "no license")
    server.answers["filter"] = {"Nodes": {"items": [{"metadata": {"name": "n1"}}]}}
    cluster.stage.pass_by(2)
    assert cluster.places() == {"p": "n1"}


@pytest.mark.parametrize("answer", [{"Error": "no license"}, {"NodeNames": ["n9"]}, None])
def test_an_ignorable_extender_is_skipped(tmp_path: Path, server: ExtenderServer, answer: Any) -> None:
    extender = {"urlPrefix": server.url, "filterVerb": "filter", "nodeCacheCapable": True, "ignorable": True}
    cluster = Extended(tmp_path, extender)
    server.answers["filter"] = answer
    cluster.pod("p")
    assert cluster.places()["p"]
    assert len(server.sent("filter")) == 1


def test_an_unreachable_extender_is_named(tmp_path: Path) -> None:
    cluster = Extended(tmp_path, {"urlPrefix": "http://127.0.0.1:1", "filterVerb": "filter"})
    cluster.pod("p")
    assert cluster.places() == {"p": ""}
    reason, message = cluster.condition("p")
    assert reason == "SchedulerError"
    assert message.startswith('Post "http://127.0.0.1:1/filter": ')


def test_an_extender_scores_nodes(tmp_path: Path, server: ExtenderServer) -> None:
    extender = {"urlPrefix": server.url, "prioritizeVerb": "prioritize", "weight": 5, "nodeCacheCapable": True}
    cluster = Extended(tmp_path, extender)
    for best in ("n1", "n2"):
        server.answers["prioritize"] = [{"Host": best, "Score": 10}]
        cluster.pod(best, cpu="100m")
        assert cluster.places()[best] == best
    del server.answers["prioritize"]
    cluster.pod("p", cpu="100m")
    assert cluster.places()["p"], "an error has no effect"


def test_pods_without_managed_resources_are_not_sent(tmp_path: Path, server: ExtenderServer) -> None:
    managed = [{"name": "example.com/gpu", "ignoredByScheduler": True}]
    cluster = Extended(tmp_path, {"urlPrefix": server.url, "filterVerb": "filter", "managedResources": managed})
    cluster.pod("plain")
    assert cluster.places()["plain"]
    assert server.requests == []
    server.answers["filter"] = {"Nodes": {"items": [{"metadata": {"name": "n1"}}]}}
    cluster.pod("gpu", containers=GPU)
    assert cluster.places()["gpu"] == "n1", "the scheduler does not count the resource itself"


def test_an_extender_binds_pods(tmp_path: Path, server: ExtenderServer) -> None:
    cluster = Extended(tmp_path, {"urlPrefix": server.url, "bindVerb": "bind"})
    server.answers["bind"] = {"Error": "not now"}
    cluster.pod("p")
    assert cluster.places() == {"p": ""}
    assert cluster.condition("p") == ("SchedulerError", "not now")
    server.answers["bind"] = {}
    cluster.stage.pass_by(1)
    assert cluster.places() == {"p": ""}, "the extender writes the binding"
    sent = server.sent("bind")[-1]
    assert [*sent] == ["PodName", "PodNamespace", "PodUID", "Node"]
    assert (sent["PodName"], sent["PodNamespace"], sent["Node"] in ("n1", "n2")) == ("p", "a", True)
    assert len(cluster.recorded("Scheduled")) == 1


def preempting(folder: Path, server: ExtenderServer, **settings: Any) -> Extended:
    cluster = Extended(folder, {"urlPrefix": server.url, "preemptVerb": "preempt", **settings})
    cluster.important("high", 100)
    for name in ("n1", "n2"):
        cluster.pod(f"low-{name}", cpu="2", nodeSelector={"kubernetes.io/hostname": name})
    cluster.places()
    return cluster


@pytest.mark.parametrize("caches", [False, True])
def test_an_extender_chooses_among_the_nodes_to_preempt(tmp_path: Path, server: ExtenderServer, caches: bool) -> None:
    cluster = preempting(tmp_path, server, nodeCacheCapable=caches)
    victim = cluster.stage.send("GET", "/api/v1/namespaces/a/pods/low-n2", None).body["metadata"]["uid"]
    meta = {"Pods": [{"UID": victim}], "NumPDBViolations": 0}
    server.answers["preempt"] = {"NodeNameToMetaVictims": {"n2": meta}}
    cluster.pod("p", cpu="2", priorityClassName="high")
    cluster.places()
    assert cluster.status("p")["nominatedNodeName"] == "n2"
    sent = server.sent("preempt")[0]
    assert [*sent] == ["Pod", "NodeNameToVictims", "NodeNameToMetaVictims"]
    if caches:
        assert sent["NodeNameToVictims"] is None
        assert sent["NodeNameToMetaVictims"]["n2"] == meta
    else:
        assert sent["NodeNameToMetaVictims"] is None
        assert sent["NodeNameToVictims"]["n1"]["Pods"][0]["metadata"]["name"] == "low-n1"


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({}, f"{SKIPPED}, preemption: no candidate node for preemption"),
        ({"NodeNameToMetaVictims": {"n1": {}}}, 'preemption: expected at least one victim pod on node "n1"'),
        ({"NodeNameToMetaVictims": {"n1": {"Pods": [{"UID": "u"}]}}}, "but the pod is not found on that node"),
        (None, "code 500"),
    ],
)
def test_an_extender_prevents_preemption(tmp_path: Path, server: ExtenderServer, answer: Any, message: str) -> None:
    cluster = preempting(tmp_path, server)
    server.answers["preempt"] = answer
    cluster.pod("p", cpu="2", priorityClassName="high")
    assert cluster.places() == {"low-n1": "n1", "low-n2": "n2", "p": ""}
    assert cluster.condition("p")[1].startswith("0/2 nodes are available: 2 Insufficient cpu. ")
    assert cluster.condition("p")[1].endswith(message)


@pytest.mark.parametrize(
    ("extenders", "message"),
    [
        (
            [{"prioritizeVerb": "p"}],
            "extenders[0].weight: Invalid value: 0: must have a positive weight applied to it",
        ),
        (
            [{"bindVerb": "a"}, {"bindVerb": "b"}],
            'extenders: Invalid value: "found 2 extenders implementing bind": only one extender can implement bind',
        ),
        (
            [{"managedResources": [{"name": "cpu"}]}],
            'extenders[0].managedResources[0].name: Invalid value: "cpu": is an invalid extended resource name',
        ),
        (
            [{"managedResources": [{"name": "a.com/b"}]}, {"managedResources": [{"name": "a.com/b"}]}],
            'extenders[1].managedResources[0].name: Invalid value: "a.com/b": duplicate extender managed resource name',
        ),
        ([{"httpTimeout": "soon"}], 'httpTimeout: time: invalid duration "soon"'),
        ([{"tlsConfig": {"certData": "YQ=="}}], "a client certificate needs both a certificate and a key"),
        (
            [{"tlsConfig": {"caData": "YQ==", "insecure": True}}],
            "specifying a root certificates file with the insecure flag is not allowed",
        ),
        ([{"tlsConfig": {"caFile": "none.pem"}}], "No such file or directory"),
    ],
)
def test_the_configuration_is_checked(tmp_path: Path, extenders: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(SettingsError) as caught:
        read_configuration(written(tmp_path, extenders=extenders))
    assert message in str(caught.value)


def test_the_settings_of_tls_and_time(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("authority")
    tls = {"caFile": "ca.pem", "certData": "Yw==", "keyData": "aw==", "serverName": "s"}
    extenders = [
        {"urlPrefix": "https://a", "ignorable": True, "enableHTTPS": True},
        {"urlPrefix": "https://b", "httpTimeout": "1m30s", "tlsConfig": tls},
    ]
    last, first = read_configuration(written(tmp_path, extenders=extenders)).extenders[::-1]
    assert (first.url, first.timeout, first.authorities, first.certificate) == ("https://b", 90, b"authority", b"c\nk")
    assert (first.server_name, first.is_verified) == ("s", True)
    assert (last.url, last.timeout, last.is_verified) == ("https://a", 5, False)

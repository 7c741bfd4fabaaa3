"""Tests that the admission rules of an app have the same effect inside the API server (`serve --app`) and as webhooks
(`run`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from ctrlmgr.serve.front import default_route_address
from ctrlmgr.testing.served import ServerProcess
from tests.framework.served import HttpsCluster, wait_until
from tests.framework.test_run import FAST, run
from tests.free_ports import free_port

RULES = """
from ctrlmgr import App, Kind, Model, Refused

app = App("limits")


class SiteSpec(Model):
    replicas: int = 1
    image: str = ""


class Site(Kind, api_version="example.com/v1"):
    spec: SiteSpec = SiteSpec()


@app.admission(Site)
def defaults(site, write):
    site.spec.image = site.spec.image or "nginx:1"
    site.metadata.annotations["by/whom"] = write.user
    limits = write.cache.get("v1/ConfigMap", "limits", write.namespace)
    if limits is not None:
        site.metadata.annotations["limit"] = limits["data"]["max"]


@app.admission(Site, validates=True, on="spec.replicas")
def few_replicas(site, write):
    if site.spec.replicas > 5:
        raise Refused(f"{site.spec.replicas} replicas are more than 5, {write.old and write.old.spec.replicas} before")
    if site.spec.replicas > 3:
        write.warn("more than 3 replicas are costly")


@app.admission(Site, validates=True, operations=["DELETE"])
def kept(site, write):
    if write.old.labels.get("keep") == "yes":
        raise Refused("it is kept")


@app.admission("v1/Secret", operations=["CREATE"])
def broken(secret, write):
    if secret.name == "breaks":
        raise KeyError("oops")
"""
SITES = "/apis/example.com/v1/namespaces/default/sites"
MUTATING = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
VALIDATING = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"


class Response(tuple[int, Any, "list[str]"]):
    """The status code, the body and the warnings of a response."""


def ask(server: ServerProcess, method: str, path: str, body: Any = None, query: str = "") -> Response:
    kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
    headers = {"Authorization": f"Bearer {server.token}", "Content-Type": kind}
    data = None if body is None else json.dumps(body).encode()
    request = Request(f"{server.url}{path}{query}", data, headers, method=method)
    try:
        with urlopen(request, timeout=30, context=server.trust) as response:
            return Response((response.status, json.load(response), response.headers.get_all("Warning") or []))
    except HTTPError as refusal:
        return Response((refusal.code, json.load(refusal), refusal.headers.get_all("Warning") or []))


def site(name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "example.com/v1", "kind": "Site", "metadata": {"name": name}, "spec": spec}


def play(server: ServerProcess) -> list[Any]:
    """Send a user's requests, and return the results without the prefix that the API server adds to refusals by
    webhooks.
    """
    seen: list[Any] = []

    def do(method: str, path: str, body: Any = None, query: str = "") -> None:
        code, answer, warnings = ask(server, method, path, body, query)
        if code < 400:
            metadata = answer.get("metadata") or {}
            shown = [answer.get("spec"), metadata.get("labels"), metadata.get("annotations")]
        else:
            shown = [answer["message"].rpartition(": ")[2].partition(" (/")[0]]
        seen.append([method, code, *shown, warnings])

    do("POST", SITES, site("small"))
    do("POST", SITES, site("large", replicas=7))
    do("POST", SITES, site("costly", replicas=4))
    do("POST", SITES, site("dry"), query="?dryRun=All")
    do("POST", "/api/v1/namespaces/default/configmaps", {"metadata": {"name": "limits"}, "data": {"max": "5"}})
    do("PATCH", f"{SITES}/small", {"spec": {"replicas": 6}})
    do("PATCH", f"{SITES}/small", {"spec": {"replicas": 2}, "metadata": {"labels": {"keep": "yes"}}})
    do("DELETE", f"{SITES}/small")
    do("DELETE", f"{SITES}/costly")
    do("POST", "/api/v1/namespaces/default/secrets", {"metadata": {"name": "breaks"}})
    do("POST", "/api/v1/namespaces/default/secrets", {"metadata": {"name": "works"}})
    return seen


@contextmanager
def served(folder: Path, *flags: str) -> Iterator[ServerProcess]:
    folder.mkdir()
    with ServerProcess(folder, "--database", "memory:", *flags) as server:
        yield server


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    file = tmp_path / "limits.py"
    file.write_text(RULES)
    return file


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with served(tmp_path_factory.mktemp("served") / "cluster") as running:
        yield running


def are_registered(cluster: HttpsCluster) -> bool:
    return all(cluster.is_served(f"{path}/limits.apps.ctrlmgr.io") for path in (MUTATING, VALIDATING))


def test_rules_decide_equally_in_the_server_and_as_webhooks(tmp_path: Path, rules: Path, server: ServerProcess) -> None:
    with served(tmp_path / "inside", "--app", str(rules)) as inside:
        wait_until(lambda: HttpsCluster(inside).is_served(SITES))
        expected = play(inside)
    codes = [each[1] for each in expected]
    assert codes == [201, 403, 201, 201, 201, 403, 200, 403, 200, 500, 201]
    assert expected[0][2:5] == [{"image": "nginx:1", "replicas": 1}, None, {"by/whom": "system:admin"}]
    assert expected[1][2] == "7 replicas are more than 5, None before"
    assert expected[2][5] == ['299 - "more than 3 replicas are costly"']
    assert expected[5][2] == "6 replicas are more than 5, 1 before"
    assert expected[6][4]["limit"] == "5"
    cluster, log = HttpsCluster(server), server.kubeconfig.with_name("rules.log")
    with run(server, "rules", str(rules), allows_tracebacks=True):
        wait_until(lambda: are_registered(cluster))
        assert play(server) == expected
        told = log.read_text()
        assert "controllers=" not in told  # the app has no validating rules
        assert "webhooks=['defaults', 'few-replicas', 'kept', 'broken']" in told
        assert "webhooks registered" in told
        assert "https://127.0.0.1:" in told
    assert not cluster.is_served(f"{MUTATING}/limits.apps.ctrlmgr.io")
    assert not cluster.is_served(f"{VALIDATING}/limits.apps.ctrlmgr.io")
    assert ask(server, "POST", SITES, site("after", replicas=7))[0] == 201


def test_a_restart_corrects_the_configuration_of_a_killed_process(rules: Path, server: ServerProcess) -> None:
    cluster = HttpsCluster(server)
    with run(server, "killed", str(rules), "--leader-elect=false") as killed:
        wait_until(lambda: are_registered(cluster))
        killed.kill()
        killed.wait(30)
    code, answer, _ = ask(server, "POST", SITES, site("refused"))
    assert code == 500
    assert "failed calling webhook" in answer["message"]
    rules.write_text(RULES.partition("@app.admission(Site, validates")[0])  # only a rule that changes objects is left
    with run(server, "next", str(rules), *FAST):
        wait_until(lambda: ask(server, "POST", SITES, site("again", replicas=7))[0] == 201)
        assert not cluster.is_served(f"{VALIDATING}/limits.apps.ctrlmgr.io")
        assert cluster.is_served(f"{MUTATING}/limits.apps.ctrlmgr.io")


def test_an_app_without_rules_removes_the_configuration_of_earlier_versions(rules: Path, server: ServerProcess) -> None:
    cluster = HttpsCluster(server)
    with run(server, "killed", str(rules), "--leader-elect=false") as killed:
        wait_until(lambda: are_registered(cluster))
        killed.kill()
        killed.wait(30)
    rules.write_text(
        "from ctrlmgr import App\napp = App('limits')\n"
        "@app.controller('v1/ConfigMap')\ndef maps(obj, context):\n    pass\n"
    )
    with run(server, "next", str(rules), "--leader-elect=false"):
        wait_until(lambda: ask(server, "POST", SITES, site("free", replicas=7))[0] == 201)
        wait_until(lambda: not cluster.is_served(f"{VALIDATING}/limits.apps.ctrlmgr.io"))


def test_processes_behind_a_service_share_an_authority(rules: Path, server: ServerProcess) -> None:
    cluster = HttpsCluster(server)
    arguments = (str(rules), "--webhook-service", "default/limits", "--webhook-listen", "127.0.0.1:0", *FAST)
    found = []
    for name in ("first", "second"):
        with run(server, name, *arguments):
            wait_until(lambda: are_registered(cluster))
            hook = cluster.ask("GET", f"{MUTATING}/limits.apps.ctrlmgr.io")["webhooks"][0]["clientConfig"]
            assert {**hook["service"], "path": ""} == {
                "namespace": "default",
                "name": "limits",
                "port": 443,
                "path": "",
            }
            found.append(hook["caBundle"])
    secret = cluster.ask("GET", "/api/v1/namespaces/default/secrets/limits-webhook-authority")
    assert found == [secret["data"]["ca.crt"]] * 2


def test_only_writes_in_the_followed_namespace_are_checked(rules: Path, server: ServerProcess) -> None:
    cluster = HttpsCluster(server)
    cluster.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "mine"}})
    name = f"{VALIDATING}/mine.limits.apps.ctrlmgr.io"
    with run(server, "namespace", str(rules), "--namespace", "mine"):
        wait_until(lambda: cluster.is_served(name))
        assert ask(server, "POST", SITES, site("elsewhere", replicas=7))[0] == 201
        mine = SITES.replace("default", "mine")
        wait_until(lambda: ask(server, "POST", mine, site("full", replicas=7))[0] == 403)


def decides(server: ServerProcess, name: str) -> bool:
    """Return whether the admission rules refuse a Site object that is too large."""
    return ask(server, "POST", SITES, site(name, replicas=7))[0] == 403


def test_the_given_url_is_called_with_its_path(rules: Path, server: ServerProcess) -> None:
    cluster, url = HttpsCluster(server), f"https://localhost:{free_port()}/hooks/"
    with run(server, "url", str(rules), "--webhook-url", url, *FAST):
        wait_until(lambda: are_registered(cluster))
        hooks = cluster.ask("GET", f"{VALIDATING}/limits.apps.ctrlmgr.io")["webhooks"]
        assert {each["clientConfig"]["url"].startswith(url) for each in hooks} == {True}
        assert decides(server, "by-url")


def test_the_given_service_routes_to_the_process(rules: Path, server: ServerProcess) -> None:
    cluster, address, port = HttpsCluster(server), default_route_address(4), free_port()
    assert address != "127.0.0.1", "an endpoint may not be a loopback address, and the machine has no other one"
    spec = {"ports": [{"name": "hooks", "port": 443, "protocol": "TCP"}]}
    cluster.ask("POST", "/api/v1/namespaces/default/services", {"metadata": {"name": "hooks"}, "spec": spec})
    slice_ = {
        "metadata": {"name": "hooks", "labels": {"kubernetes.io/service-name": "hooks"}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [address], "conditions": {"ready": True}}],
        "ports": [{"name": "hooks", "port": port, "protocol": "TCP"}],
    }
    cluster.ask("POST", "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", slice_)
    place = ("--webhook-service", "default/hooks", "--webhook-listen", f"{address}:{port}")
    with run(server, "service", str(rules), *place, *FAST):
        wait_until(lambda: are_registered(cluster))
        assert decides(server, "by-service")

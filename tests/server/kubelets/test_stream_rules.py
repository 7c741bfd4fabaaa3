"""Tests that streams obey the same rules as other requests: permissions, admission, audit, limits, metrics, and how
they end.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from ctrlmgr.api.resource import Resource
from ctrlmgr.audit.policy import read_policy
from ctrlmgr.audit.request_events import StageEvent
from ctrlmgr.authentication.user import User
from ctrlmgr.authorization.attributes import Attributes
from ctrlmgr.authorization.authorizer import ALLOWED, NO_OPINION, Verdict
from ctrlmgr.clock import SystemClock
from ctrlmgr.engine.admission_attributes import Verb
from ctrlmgr.engine.operations import Operation
from ctrlmgr.metrics import LONG_RUNNING
from ctrlmgr.server.auditing.audit_filter import Auditing
from ctrlmgr.server.authn import watch_revalidation
from ctrlmgr.server.authn.access import AllowEverything
from ctrlmgr.server.authn.authenticator_interfaces import RequestParts
from ctrlmgr.server.kubelets.shares import TunnelShares
from tests.e2e.serving import until
from tests.server.kubelets.kubelet_site import KubeletSite, a_scene, read
from tests.server.kubelets.raw_kubelet import SUCCESS

POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "rules": [{"level": "Request", "resources": [{"group": "", "resources": ["pods/*"]}]}],
}


class Access(AllowEverything):
    """An authenticator that takes a token as the name of its user; a user has the permissions (verb, resource) in
    `rights`.
    """

    def __init__(self) -> None:
        super().__init__()
        self.rights: dict[str, set[tuple[str, str]]] = {}

    async def authenticate(self, parts: RequestParts) -> User:
        token = dict(parts.headers).get(b"authorization", b"").decode()
        return User(token) if token else self._user

    def authorize(self, user: User, attributes: Attributes) -> Verdict:
        asked = attributes.verb, "/".join(filter(None, (attributes.resource, attributes.subresource)))
        return ALLOWED if user.name == "admin" or asked in self.rights.get(user.name, ()) else NO_OPINION


class MemoryAudit:
    """An audit backend that stores events in memory."""

    is_strict = False

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []

    def process_events(self, events: Sequence[StageEvent]) -> bool:
        self.events += [json.loads(event.line) for event in events]
        return True


ACCESS, KEPT = Access(), MemoryAudit()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubeletSite]:
    folder: Path = tmp_path_factory.mktemp("kubelets")
    (folder / "policy.yaml").write_text(json.dumps(POLICY))
    auditing = Auditing(read_policy(folder / "policy.yaml"), [KEPT], clock=SystemClock())
    with a_scene(folder, access=ACCESS, auditing=auditing) as cluster:
        yield cluster


def as_(user: str) -> str:
    return f"Authorization: {user}\r\n"


def test_a_stream_requires_create_on_its_subresource(cluster: KubeletSite) -> None:
    pod = {("get", "pods"), ("create", "pods"), ("get", "pods/exec"), ("create", "pods/attach")}
    ACCESS.rights["eve"] = pod
    refused = read(cluster.exec("good", headers=as_("eve")))
    assert refused.startswith(b"HTTP/1.1 403")
    assert b'pods \\"p\\" is forbidden' in refused
    ACCESS.rights["eve"] = pod - {("get", "pods/exec")}
    assert b'cannot get resource \\"pods/exec\\"' in read(cluster.exec("good", headers=as_("eve")))
    ACCESS.rights["eve"] = pod | {("create", "pods/exec")}
    assert SUCCESS in read(cluster.exec("good", headers=as_("eve")))


def test_a_stream_is_audited_as_a_request_for_its_subresource(cluster: KubeletSite) -> None:
    KEPT.events.clear()
    read(cluster.exec("good"))
    until(lambda: [each["stage"] for each in KEPT.events][-1:] == ["ResponseComplete"])
    event = KEPT.events[-1]
    assert (event["verb"], event["responseStatus"]["code"]) == ("get", 101)
    about = event["objectRef"]
    assert (about["resource"], about["subresource"], about["name"]) == ("pods", "exec", "p")
    assert "command=c" in event["requestURI"]


class NoCommands:
    """An admission chain that refuses one command in exec requests."""

    seen: tuple[Any, ...] = ()

    def handles(self, resource: Resource, subresource: str, operation: Verb) -> bool:
        return operation is Verb.CONNECT

    def admit(self, attributes: Any) -> Operation[None]:
        yield from ()
        options = attributes.fields or {}
        self.seen = options["kind"], options["command"], options["container"]
        raise attributes.forbidden("no commands here")


def test_admission_checks_the_options_of_a_connection(cluster: KubeletSite) -> None:
    engine, plugin = cluster.made.backend.engine, NoCommands()
    before, engine.admission = engine.admission, cast("Any", plugin)
    try:
        refused = read(cluster.exec("good"))
    finally:
        engine.admission = before
    assert refused.startswith(b"HTTP/1.1 403")
    assert b"no commands here" in refused
    assert plugin.seen == ("PodExecOptions", ["c"], "good")


def open_streams() -> float:
    return sum(
        sample.value
        for family in LONG_RUNNING.collect()
        for sample in family.samples
        if sample.labels["subresource"] == "exec"
    )


def test_an_open_stream_is_counted(cluster: KubeletSite) -> None:
    assert open_streams() == 0
    with cluster.exec("waits") as connection:
        assert connection.recv(12) == b"HTTP/1.1 101"
        assert open_streams() == 1
    until(lambda: open_streams() == 0)


def test_a_user_with_too_many_streams_gets_retry_after(cluster: KubeletSite, monkeypatch: pytest.MonkeyPatch) -> None:
    ACCESS.rights["joe"] = ACCESS.rights["jane"] = {("get", "pods/exec"), ("create", "pods/exec")}
    assert SUCCESS in read(cluster.exec("good", headers=as_("joe")))
    monkeypatch.setattr(cluster.proxies[0], "_shares", TunnelShares(10, 1))
    with cluster.exec("waits", headers=as_("joe")) as connection:
        assert connection.recv(12) == b"HTTP/1.1 101"
        refused = read(cluster.exec("good", headers=as_("joe")))
        assert refused.startswith(b"HTTP/1.1 429")
        assert b"retry-after: 1" in refused.lower()
        assert SUCCESS in read(cluster.exec("good", headers=as_("jane")))


def test_a_stream_ends_when_its_right_is_revoked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_revalidation, "EVERY", 0.05)
    access = Access()
    access.rights["ann"] = access.rights["bob"] = {("get", "pods/exec"), ("create", "pods/exec")}
    with a_scene(tmp_path, access=access) as cluster:
        with (
            cluster.exec("waits", headers=as_("bob")) as other,
            cluster.exec("waits", headers=as_("ann")) as connection,
        ):
            for each in (other, connection):
                assert each.recv(12) == b"HTTP/1.1 101"
            access.rights["ann"] = {("get", "pods/exec")}
            read(connection)  # to the end of the stream
            cluster.kubelet.wait_for_open(1)
        cluster.kubelet.wait_for_open(0)

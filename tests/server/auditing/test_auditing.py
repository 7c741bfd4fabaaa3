"""Tests of the audit events of requests over a real socket."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ctrlmgr.audit.policy import read_policy
from ctrlmgr.audit.request_events import StageEvent
from ctrlmgr.audit.request_record import Record
from ctrlmgr.authentication.user import CredentialsRefused, User
from ctrlmgr.authorization.attributes import Attributes
from ctrlmgr.authorization.authorizer import ALLOWED, NO_OPINION, Verdict
from ctrlmgr.clock import SystemClock
from ctrlmgr.metrics import REGISTRY
from ctrlmgr.server.auditing.audit_filter import Auditing
from ctrlmgr.server.authn.access import AllowEverything
from ctrlmgr.server.authn.authenticator_interfaces import AuthenticationNotes, RequestParts
from ctrlmgr.server.request import Request
from tests.server.site import CONFIG_MAPS, TIMEOUT, Site, make, running

POLICY = """
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: None, resources: [{group: "", resources: [secrets]}]}
- {level: RequestResponse, omitManagedFields: true, verbs: [create, update, patch, delete]}
- {level: Metadata}
"""


class BobAuthenticator(AllowEverything):
    """An authenticator that authenticates bob, a user without permissions, and refuses unknown tokens."""

    async def authenticate(self, parts: RequestParts) -> User:
        token = dict(parts.headers).get(b"authorization", b"")
        if token == b"wrong":
            raise CredentialsRefused("no")
        return User("bob") if token == b"bob" else self._user

    def authorize(self, user: User, attributes: Attributes) -> Verdict:
        return NO_OPINION if user.name == "bob" else ALLOWED


class MemoryAudit:
    """An audit backend and an audit store in memory; the event of a request arrives shortly after its response."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self._records: dict[str, Record] = {}
        self._came = threading.Condition()

    is_strict = False

    def process_events(self, events: Sequence[StageEvent]) -> bool:
        for event in events:
            line = event.line
            assert line.endswith(b"}\n")
            assert line.count(b"\n") == 1
            self.events.append(json.loads(line))
        return True

    def note(self, events: Sequence[StageEvent]) -> None:
        with self._came:
            self._records.update({event.record.head.id: event.record for event in events})
            self._came.notify_all()

    def record(self, id: str) -> Record:
        """Wait for the end of a request."""
        with self._came:
            assert self._came.wait_for(lambda: id in self._records, TIMEOUT)
            return self._records[id]


class Client:
    """A client that sends requests and returns their audit events."""

    def __init__(self, site: Site, kept: MemoryAudit) -> None:
        self.site = site
        self.kept = kept
        self._numbers = itertools.count()

    def ask(self, path: str, method: str = "GET", body: Any = None, headers: dict[str, str] | None = None) -> str:
        """Send a request and wait until its events are recorded; return the audit ID of the request."""
        name = f"request-{next(self._numbers)}"
        answer = self.site.ask(path, method, body, {**(headers or {}), "Audit-ID": name})
        assert answer.headers["audit-id"] == name
        self.kept.record(name)
        return name

    def events(self, *request: Any) -> list[dict[str, Any]]:
        """Send a request and return its audit events."""
        name = self.ask(*request)
        return [event for event in self.kept.events if event["auditID"] == name]

    def event(self, *request: Any) -> dict[str, Any]:
        """Send a request and return its only audit event."""
        [event] = self.events(*request)
        return event


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    file: Path = tmp_path_factory.mktemp("audit") / "policy.yaml"
    file.write_text(POLICY)
    kept = MemoryAudit()
    auditing = Auditing(read_policy(file), [kept], [kept], clock=SystemClock())
    with running(make(access=BobAuthenticator(), auditing=auditing)) as site:
        yield Client(site, kept)


def test_a_cached_policy_lookup_distinguishes_users(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    rules = [{"level": "None", "users": ["bob"]}, {"level": "None", "verbs": ["list"]}, {"level": "Metadata"}]
    file.write_text(json.dumps({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": rules}))
    auditing = Auditing(read_policy(file), [], clock=SystemClock())
    read, listed = (Attributes(verb, CONFIG_MAPS, "", "v1", "configmaps", "", "default") for verb in ("get", "list"))
    written = []
    for user, about in ((User("ann"), read), (User("bob"), read), (User("ann"), read), (User("ann"), listed)):
        request = SimpleNamespace(audit=None, notes=AuthenticationNotes())
        assert auditing.begin(cast(Request, request), about, user)
        written.append(request.audit is not None)
    assert written == [True, False, True, False]


def test_a_write_is_audited_with_its_objects(client: Client) -> None:
    body = {"metadata": {"name": "a"}, "data": {"k": "v"}}
    event = client.event(f"{CONFIG_MAPS}?fieldManager=me", "POST", body)
    assert list(event) == [
        *("kind", "apiVersion", "level", "auditID", "stage", "requestURI", "verb", "user", "sourceIPs", "objectRef"),
        *("responseStatus", "requestObject", "responseObject", "requestReceivedTimestamp", "stageTimestamp"),
        "annotations",
    ]
    assert (event["stage"], event["verb"]) == ("ResponseComplete", "create")
    assert event["requestURI"] == f"{CONFIG_MAPS}?fieldManager=me"
    assert event["objectRef"] == {"resource": "configmaps", "namespace": "default", "name": "a", "apiVersion": "v1"}
    assert event["responseStatus"] == {"metadata": {}, "code": 201}
    assert event["requestObject"]["data"] == event["responseObject"]["data"] == {"k": "v"}
    assert "managedFields" not in event["responseObject"]["metadata"]
    assert event["annotations"] == {"authorization.k8s.io/decision": "allow", "authorization.k8s.io/reason": ""}
    written = int(event["responseObject"]["metadata"]["resourceVersion"])
    assert client.kept.record(event["auditID"]).revision == written


def test_a_patch_is_audited_as_sent(client: Client) -> None:
    client.site.create("patched")
    path, merge = f"{CONFIG_MAPS}/patched", {"Content-Type": "application/merge-patch+json"}
    event = client.event(path, "PATCH", b'{"data":\n {"a": "1"}}', merge)
    assert event["requestObject"] == {"data": {"a": "1"}}
    applied = b"apiVersion: v1\nkind: ConfigMap\ndata: {b: '2'}\n"
    event = client.event(f"{path}?fieldManager=m", "PATCH", applied, {"Content-Type": "application/apply-patch+yaml"})
    assert event["requestObject"]["data"] == {"b": "2"}
    event = client.event(path, "PATCH", b"{broken", merge)
    assert "requestObject" not in event
    assert event["responseStatus"]["code"] == 400


def test_a_deletion_is_audited_with_its_options(client: Client) -> None:
    client.site.create("gone")
    event = client.event(f"{CONFIG_MAPS}/gone", "DELETE", {"propagationPolicy": "Background"})
    assert event["requestObject"]["apiVersion"] == "meta.k8s.io/__internal"
    assert event["requestObject"]["propagationPolicy"] == "Background"
    assert event["responseStatus"]["status"] == "Success"


def test_a_read_is_audited_without_objects_at_metadata(client: Client) -> None:
    event = client.event(CONFIG_MAPS)
    assert (event["level"], event["verb"]) == ("Metadata", "list")
    assert "responseObject" not in event


def test_requests_and_events_are_counted(client: Client) -> None:
    def counted() -> list[float]:
        levels = ({"level": level} for level in ("Metadata", "RequestResponse"))
        found = [REGISTRY.get_sample_value("apiserver_audit_level_total", each) for each in levels]
        return [value or 0.0 for value in (*found, REGISTRY.get_sample_value("apiserver_audit_event_total"))]

    before = counted()
    client.ask(CONFIG_MAPS)
    client.ask(CONFIG_MAPS)
    client.ask(CONFIG_MAPS, "POST", {"metadata": {"name": "counted"}})
    assert [now - then for now, then in zip(counted(), before, strict=True)] == [2, 1, 3]
    assert REGISTRY.get_sample_value("apiserver_audit_level_total", {"level": "None"}) is None


def test_requests_excluded_by_the_policy_are_not_audited(client: Client) -> None:
    answer = client.site.ask("/api/v1/namespaces/default/secrets", headers={"Audit-ID": "unwanted"})
    assert answer.status == 200
    assert answer.headers["audit-id"] == "unwanted"
    client.ask(CONFIG_MAPS)  # later events have been recorded
    assert all(event["auditID"] != "unwanted" for event in client.kept.events)


def test_a_refused_request_has_its_reason(client: Client) -> None:
    event = client.event(CONFIG_MAPS, "GET", None, {"Authorization": "bob"})
    assert event["annotations"]["authorization.k8s.io/decision"] == "forbid"
    assert (event["responseStatus"]["code"], event["responseStatus"]["reason"]) == (403, "Forbidden")
    assert event["user"] == {"username": "bob"}


def test_an_unauthenticated_request_has_one_audit_event(client: Client) -> None:
    event = client.event(CONFIG_MAPS, "GET", None, {"Authorization": "wrong"})
    assert (event["stage"], event["user"]) == ("ResponseStarted", {})
    assert (event["responseStatus"]["code"], event["responseStatus"]["message"]) == (401, "Unauthorized")
    assert client.kept.record(event["auditID"]).user is None


def test_a_watch_is_audited_at_its_start_and_its_end(client: Client) -> None:
    events = client.events(f"{CONFIG_MAPS}?watch=1&timeoutSeconds=1")
    assert [event["stage"] for event in events] == ["ResponseStarted", "ResponseComplete"]


def test_source_addresses_follow_the_proxies_headers(client: Client) -> None:
    headers = {"X-Forwarded-For": "192.0.2.1, nonsense,2001:DB8::1", "X-Real-Ip": "192.0.2.9"}
    event = client.event("/version", "GET", None, headers)
    assert event["sourceIPs"] == ["192.0.2.1", "2001:db8::1", "192.0.2.9", "127.0.0.1"]
    assert "objectRef" not in event


def test_the_impersonated_user_is_audited_with_its_impersonator(client: Client) -> None:
    event = client.event(CONFIG_MAPS, "GET", None, {"Impersonate-User": "jane"})
    assert event["user"]["username"] == "admin"
    assert event["impersonatedUser"] == {"username": "jane", "groups": ["system:authenticated"]}

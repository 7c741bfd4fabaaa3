"""Tests of the SQL table of audited requests, column by column, for all types of requests."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from ctrlmgr.audit.policy import Level, Stage
from ctrlmgr.audit.request_events import StageEvent
from ctrlmgr.audit.request_record import Record
from ctrlmgr.authentication.user import User
from ctrlmgr.authorization.attributes import Attributes, path_attributes
from ctrlmgr.authorization.authorizer import ALLOWED, Decision, Verdict
from ctrlmgr.clock import SystemClock, format_time
from ctrlmgr.inspection.audited_requests import FILE, Row, Store, open_requests
from ctrlmgr.server.auditing.audit_backends import ToStore
from ctrlmgr.testing import FakeClock
from tests.audit.records import RECEIVED, stage_event

USUAL: Mapping[str, Any] = {
    "id": "one",
    "received_at": RECEIVED,
    "seconds": 0.000005,
    "username": "ann",
    "acts_for": None,
    "verb": "create",
    "api_group": "",
    "resource": "configmaps",
    "subresource": "",
    "namespace": "n",
    "name": "c",
    "uri": "/api/v1/namespaces/n/configmaps?dryRun=All",
    "code": 201,
    "reason": "",
    "message": "",
    "decision": None,
    "because": None,
    "source": "192.0.2.1",
    "agent": 'kubectl "x"',
    "revision": None,
}


def kept(folder: Path, *events: StageEvent) -> list[dict[str, Any]]:
    """Return the stored requests, in the order in which the requests ended."""
    clock = FakeClock()
    register = ToStore(Store(folder / FILE, 1e9, clock=clock), clock=SystemClock())
    register.note(events)
    register.start()
    register.stop()
    with open_requests(folder) as database:
        answer = database.query("SELECT * FROM requests", {})
    found = [dict(zip(answer.columns, row, strict=True)) for row in answer.rows]
    assert {each.pop("noted_at") for each in found} == {format_time(clock.now())}
    return found


def status(code: int, **fields: Any) -> bytes:
    return json.dumps({"kind": "Status", "metadata": {}, "code": code, **fields}, separators=(",", ":")).encode()


def allowed(record: Record) -> None:
    record.verdict, record.revision = ALLOWED, 7


def allowed_by_a_role(record: Record) -> None:
    record.verdict = Verdict(Decision.ALLOW, 'RBAC: allowed by RoleBinding "ü/r"', "a role was not found")


def refused(record: Record) -> None:
    record.verdict = Verdict(Decision.NO_OPINION, "no role")
    record.answered(403, status(403, status="Failure", reason="Forbidden", message='"c" is forbidden'))


def not_decided(record: Record) -> None:
    record.verdict = Verdict(Decision.NO_OPINION, "", "no answer")
    record.answered(500, b"Internal Server Error")


def of_nobody(record: Record) -> None:
    record.user = None
    record.answered(401, status(401, status="Failure", reason="Unauthorized", message="Unauthorized"))


def deleted(record: Record) -> None:
    record.attributes = Attributes("delete", "", "apps", "v1", "deployments", "", "n", "c")
    record.answered(200, status(200, status="Success", message="it is gone"))


def for_another(record: Record) -> None:
    record.impersonated = User("bob", "", ("b",))


def of_a_part(record: Record) -> None:
    record.attributes = Attributes("patch", "", "apps", "v1", "deployments", "scale", "n", "c")


def about_a_path(record: Record) -> None:
    record.attributes = path_attributes("get", "/version")


def named_in_its_body(record: Record) -> None:
    record.attributes = record.attributes._replace(name="")
    record.record_object({"metadata": {"name": "d", "namespace": "other", "uid": "u"}}, lambda: b"{}")


def of_no_namespace_whatever_its_body_says(record: Record) -> None:
    cast(Any, record)._sent.uri = "/api/v1/nodes?at=/namespaces/"
    record.attributes = Attributes("create", "", "", "v1", "nodes")
    record.record_object({"metadata": {"name": "d", "namespace": "other"}}, lambda: b"{}")


def about_all_namespaces(record: Record) -> None:
    record.attributes = Attributes("list", "", "", "v1", "configmaps")


@pytest.mark.parametrize(
    ("happen", "differs"),
    [
        (lambda record: None, {}),
        (allowed, {"decision": "allow", "because": "", "revision": 7}),
        (allowed_by_a_role, {"decision": "allow", "because": 'RBAC: allowed by RoleBinding "ü/r"'}),
        (
            refused,
            {
                "code": 403,
                "reason": "Forbidden",
                "message": '"c" is forbidden',
                "decision": "forbid",
                "because": "no role",
            },
        ),
        (not_decided, {"code": 500, "because": "internal error"}),
        (of_nobody, {"code": 401, "username": None, "reason": "Unauthorized", "message": "Unauthorized"}),
        (deleted, {"verb": "delete", "api_group": "apps", "resource": "deployments", "code": 200}),
        (for_another, {"acts_for": "bob"}),
        (of_a_part, {"verb": "patch", "api_group": "apps", "resource": "deployments", "subresource": "scale"}),
        (about_a_path, {"verb": "get", "api_group": None, "resource": None, "namespace": "", "name": ""}),
        (named_in_its_body, {"name": "d"}),
        (
            of_no_namespace_whatever_its_body_says,
            {"resource": "nodes", "namespace": "", "name": "d", "uri": "/api/v1/nodes?at=/namespaces/"},
        ),
        (about_all_namespaces, {"verb": "list", "namespace": "", "name": ""}),
    ],
)
def test_each_column_has_its_field(
    tmp_path: Path, happen: Callable[[Record], None], differs: Mapping[str, Any]
) -> None:
    event = stage_event(level=Level.METADATA)
    happen(event.record)
    assert kept(tmp_path, event) == [{**USUAL, **differs}]


def test_contents_of_requests_are_not_stored(tmp_path: Path) -> None:
    events = [stage_event(level=level) for level in (Level.METADATA, Level.REQUEST, Level.REQUEST_RESPONSE)]
    assert kept(tmp_path, *events) == [USUAL] * 3
    assert b"xxxxx" in events[2].line
    assert b"xxxxx" not in b"".join(each.read_bytes() for each in tmp_path.iterdir())


def test_stored_requests_agree_with_the_log(tmp_path: Path) -> None:
    event = stage_event(stage=Stage.RESPONSE_COMPLETE)
    event.record.verdict = ALLOWED
    [row], said = kept(tmp_path, event), json.loads(event.line)
    assert (row["id"], row["received_at"]) == (said["auditID"], said["requestReceivedTimestamp"])
    assert (row["username"], row["verb"], row["uri"]) == (said["user"]["username"], said["verb"], said["requestURI"])
    named = ("resource", "namespace", "name")
    assert [row[each] for each in named] == [said["objectRef"][each] for each in named]
    assert (row["code"], row["agent"]) == (said["responseStatus"]["code"], said["userAgent"])
    assert row["source"] == said["sourceIPs"][0]
    assert row["decision"] == said["annotations"]["authorization.k8s.io/decision"]


class RecordingStore(Store):
    """Records which requests were stored in one transaction."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / FILE, 1e9, clock=FakeClock())
        self.bundles: list[list[str]] = []
        self._came = threading.Condition()

    def write(self, rows: Sequence[Row]) -> bool:
        with self._came:
            self.bundles.append([row.id for row in rows])
            self._came.notify()
        return super().write(rows)

    def wait_for(self, count: int) -> None:
        with self._came:
            assert self._came.wait_for(lambda: len(self.bundles) >= count, 20)


def test_single_requests_are_stored_at_once_and_continuous_ones_each_second(tmp_path: Path) -> None:
    store, clock = RecordingStore(tmp_path), FakeClock()
    register = ToStore(store, clock=clock)
    register.start()
    register.note([stage_event("alone")])
    clock.step(0.25)
    store.wait_for(1)
    for name in ("first", "second"):
        register.note([stage_event(name)])
        while clock.next_deadline_in() is None:
            os.sched_yield()  # the thread has been notified, and has not yet checked
        assert clock.next_deadline_in() == (1.0 if name == "first" else 0.5)
        clock.step(0.5)
    store.wait_for(2)
    register.stop()
    assert store.bundles == [["alone"], ["first", "second"]]

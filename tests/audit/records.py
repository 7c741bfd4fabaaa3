"""Requests for tests of auditing."""

from __future__ import annotations

from collections.abc import Mapping

from ctrlmgr.audit.policy import AuditDecision, Level, Stage
from ctrlmgr.audit.request_events import StageEvent
from ctrlmgr.audit.request_record import Record
from ctrlmgr.authentication.header_lines import HeaderLines
from ctrlmgr.authentication.user import User
from ctrlmgr.authorization.attributes import Attributes
from ctrlmgr.clock import parse_time

RECEIVED = "2026-01-02T03:04:05.120000Z"
NOTHING_TOLD: Mapping[str, str] = {}
ANN = User("ann", "7", ("dev", 'o"ps'))


class ReceivedRequest:
    """A request in the form in which the server received it."""

    uri = "/api/v1/namespaces/n/configmaps?dryRun=All"
    peer = "192.0.2.2"

    def __init__(self, id: bytes) -> None:
        self.id = id
        self.raw_headers = HeaderLines([(b"user-agent", b'kubectl "x"'), (b"x-forwarded-for", b"192.0.2.1")])


def stage_event(
    id: str = "one",
    level: Level = Level.REQUEST_RESPONSE,
    stage: Stage = Stage.RESPONSE_COMPLETE,
    user: User | None = ANN,
    annotations: Mapping[str, str] = NOTHING_TOLD,
) -> StageEvent:
    """Return an audit event of a request that created a ConfigMap, with the annotations of admission."""
    about = Attributes("create", "/api/v1/namespaces/n/configmaps", "", "v1", "configmaps", "", "n", "c")
    record = Record(
        AuditDecision(level, frozenset(), without_managed_fields=False),
        about,
        user,
        ReceivedRequest(id.encode()),
        parse_time(RECEIVED),
        annotations,
    )
    record.set_request_object(b'{"data":{"a":"%s"}}' % (b"x" * 1000))
    record.answered(201, b'{"data":{"a":"%s"}}' % (b"x" * 1000))
    return StageEvent(record, stage, record.received + 5)

"""Measures the cost of the audit log for a create that is logged, and for a read that the audit policy excludes.

Two users send the same requests to a server in short turns. The policy logs the requests of one user, and excludes
those of the other. The turns are repeated with several servers. The benchmark compares the processor time of one
process per request (`bench.support.spending`), because two processes of the same program differ by more than the cost
of audit. Requests are logged at level Metadata, to the log file and to the database of `ctrlmgr sql audit`. The audit
backend writes events to the database a second later, so the processor time of the writes counts for the turn that runs
at that time.

The benchmark also measures the work of audit for a request alone, in its own process and threads, and adds this time to
the cost of a create without audit. The check of the policy for an excluded read is also measured alone.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from time import process_time
from typing import cast

from bench.api import SERVICE
from bench.report import Claim, report, run
from bench.support.served import ROOM, serving
from bench.support.spending import RequestSeries, in_turns
from ctrlmgr.audit.request_record import Record
from ctrlmgr.authentication.header_lines import HeaderLines
from ctrlmgr.authentication.user import AUTHENTICATED, MASTERS, User
from ctrlmgr.authorization.attributes import Attributes
from ctrlmgr.authorization.authorizer import ALLOWED
from ctrlmgr.clock import SystemClock
from ctrlmgr.serve.auditing import AuditLog
from ctrlmgr.server.authn.authenticator_interfaces import AuthenticationNotes
from ctrlmgr.server.request import Request
from ctrlmgr.settings import Settings
from ctrlmgr.settings.audit_settings import AuditSettings

TIMES = 5
SERVERS, TURNS = 8, 40
USERS = ("written", "let-off")
WRITTEN = 5000
"""Number of requests for which the steps of audit are timed alone.

This number is less than the maximum number of events that may wait for the database.
"""
POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "None", "verbs": ["get"], "resources": [{"resources": ["configmaps"]}]},
        {"level": "None", "users": ["let-off"]},
        {"level": "Metadata"},
    ],
}
QUIET = ("--controllers", "namespace-controller")
"""The server runs without controllers, because controllers would also write, with varying load."""
HEADERS = [(b"host", b"127.0.0.1"), (b"user-agent", b"kubectl/v1.36.2 (linux/amd64) kubernetes/0123456")]
SERVICES = "/api/v1/namespaces/default/services"
READ = "/api/v1/namespaces/default/configmaps/read"


def creates(number: int) -> tuple[float, float]:
    """Return the microseconds of processor time of a logged create, and of an excluded create.

    The `number` of the server decides whether the logged or the excluded create is sent first.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with serving(folder, *options(folder)) as served:
            asked = [served._replace(token=user) for user in USERS]
            written, let_off = (
                RequestSeries(each, each.request("POST", SERVICES, json.dumps(SERVICE)), 201) for each in asked
            )
            if number % 2:
                return in_turns(written, let_off, TURNS)
            others, ours = in_turns(let_off, written, TURNS)
            return ours, others


def create_to_let_off() -> Claim:
    """Compare logged creates with excluded creates, on several servers.

    The placement of a server's objects in memory changes the measured time by one or two percent for as long as the
    server runs. Therefore the mean of several servers is compared.
    """
    written, let_off = (fmean(each) for each in zip(*(creates(number) for number in range(SERVERS)), strict=True))
    return Claim("create of a Service, audited at the level Metadata", written, let_off, 1.05, "us", at_most=True)


class AuditedRequest:
    """A request with the fields that the audit log reads."""

    uri, id, code, peer = SERVICES, b"0123", 201, "127.0.0.1"
    audit: Record | None = None

    def __init__(self) -> None:
        """Return a request that creates a Service."""
        self.notes = AuthenticationNotes()
        self.raw_headers = HeaderLines(HEADERS)


def _settings(folder: Path) -> Settings:
    said = AuditSettings(policy_file=str(folder / "policy.json"), log_path=str(folder / "alone.log"))
    return Settings(audit=said, data_dir=str(folder / "alone"))


def written_down(folder: Path) -> float:
    """Return the microseconds of processor time for logging a create, in this thread and the threads of audit."""
    log = AuditLog(_settings(folder), clock=SystemClock())
    about = Attributes("create", SERVICES, "", "v1", "services", "", "default")
    user = User("system:admin", "system:admin", (MASTERS, AUTHENTICATED))
    assert log.step is not None
    before = process_time()
    for each in log.kept:
        each.start()
    for _ in range(WRITTEN):
        request = cast(Request, AuditedRequest())
        log.step.begin(request, about, user)
        assert request.audit is not None
        request.audit.verdict = ALLOWED
        log.step.end(request, request.audit)
    for each in log.kept:
        each.stop()
    return 1e6 * (process_time() - before) / WRITTEN


def let_off(folder: Path) -> float:
    """Return the microseconds of processor time for checking the policy for an excluded request."""
    step = AuditLog(_settings(folder), clock=SystemClock()).step
    about = Attributes("get", READ, "", "v1", "configmaps", "", "default", "read")
    user = User("system:admin", "system:admin", (MASTERS, AUTHENTICATED))
    assert step is not None
    before = process_time()
    for _ in range(WRITTEN):
        step.begin(cast(Request, None), about, user)
    return 1e6 * (process_time() - before) / WRITTEN


def options(folder: Path) -> Sequence[str]:
    """Write the policy and the tokens of `USERS` into `folder`; return the server options that name the two files."""
    policy, tokens = folder / "policy.json", folder / "tokens.csv"
    policy.write_text(json.dumps(POLICY))
    tokens.write_text("".join(f'{user},{user},{user},"{MASTERS}"\n' for user in USERS))
    tokens.chmod(0o600)
    log = ("--audit-log-path", str(folder / "audit.log"))
    return ("--audit-policy-file", str(policy), *log, "--token-auth-file", str(tokens), *ROOM, *QUIET)


def main(arguments: Sequence[str]) -> int:
    """Run the benchmark."""
    create = create_to_let_off()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with serving(folder, *options(folder)) as served:
            body = json.dumps({"metadata": {"name": "read"}, "data": {"a": "b"}}).encode()
            served.open("POST", "/api/v1/namespaces/default/configmaps", body)
            seconds, answers = RequestSeries(served, served.request("GET", READ)).spent()
        alone = min(written_down(folder) for _ in range(TIMES))
        look = min(let_off(folder) for _ in range(TIMES))
    read = 1e6 * seconds / answers
    claims = [
        Claim(
            "create of a Service with an audit event, compared with no audit event",
            create.limit + alone,
            create.limit,
            1.05,
            "us",
            at_most=True,
        ),
        create,
        Claim(
            "GET with a check of an audit policy that does not record it", read + look, read, 1.03, "us", at_most=True
        ),
    ]
    return report(claims, arguments)


if __name__ == "__main__":
    run(main, __doc__)

"""The audit log: what it costs a create to be written down, and a read to be let off.

Two servers, one with a policy and one without, are given the same requests in turns. What is compared is the processor
time of the server's process for each request: it is what audit takes from the others, and other loads on the machine
do not change it as they change a rate. The audited one writes every request at level Metadata into its log file and
into the database that `ctrlmgr sql audit` asks; reads of ConfigMaps are at level None.

Where other programs keep the processor busy, a request's time varies by more than audit takes. So what audit does for a
request is timed by itself as well, in this process and with its threads, and added to what the create takes without.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import process_time
from typing import cast

from bench.api import SERVICE, load
from bench.report import Claim, report
from bench.support.served import Served, serving
from ctrlmgr.audit.record import Record
from ctrlmgr.authentication.user import AUTHENTICATED, MASTERS, User
from ctrlmgr.authorization.attributes import Attributes
from ctrlmgr.authorization.authorizer import ALLOWED
from ctrlmgr.clock import SystemClock
from ctrlmgr.serve.auditing import AuditLog
from ctrlmgr.server.authn.parts import Told
from ctrlmgr.server.http.request import Request
from ctrlmgr.settings import Settings
from ctrlmgr.settings.audit import AuditSettings

CLIENTS = 4
SECONDS = 0.8
ROUNDS = 8
WRITTEN = 5000
"""Requests of which the steps of audit are timed by themselves; fewer than wait for the database at most."""
POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "None", "verbs": ["get"], "resources": [{"resources": ["configmaps"]}]},
        {"level": "Metadata"},
    ],
}
QUIET = ("--controllers", "namespace-controller")
"""Controllers would write as well, as much as they come to: what is measured is the request."""
SERVICES = "/api/v1/namespaces/default/services"
READ = "/api/v1/namespaces/default/configmaps/read"


def cost(served: Served, request: str, expect: int) -> float:
    """Return the microseconds of processor time that a request takes."""
    before = served.spent()
    measured = load(served, CLIENTS, [request], SECONDS, expect)
    # The warm-up is spent, too, and its requests are not counted: what counts is that both servers have the same.
    return 1e6 * (served.spent() - before) / measured.answers


def compared(audited: Served, plain: Served, method: str, path: str, body: str, expect: int) -> tuple[float, float]:
    """Return the cost of a request with and without audit, the least of rounds in turns.

    What else runs on the machine makes a request dearer, by what it takes out of the caches, and never cheaper.
    """
    costs: tuple[list[float], list[float]] = ([], [])
    for _ in range(ROUNDS):
        for served, found in zip((audited, plain), costs, strict=True):
            found.append(cost(served, served.request(method, path, body), expect))
    return min(costs[0]), min(costs[1])


class Asked:
    """What the audit log looks at of a request."""

    uri, id, code, peer = SERVICES, b"0123", 201, "127.0.0.1"
    audit: Record | None = None

    def __init__(self) -> None:
        """Ask for a Service to be created."""
        self.told = Told()

    def header(self, name: bytes) -> bytes:
        """Return a header."""
        return b"kubectl/v1.36.2 (linux/amd64) kubernetes/0123456" if name == b"user-agent" else b""


def written_down(folder: Path) -> float:
    """Return the microseconds of processor time that writing down a create takes: its steps, and its threads."""
    said = AuditSettings(policy_file=str(folder / "policy.json"), log_path=str(folder / "alone.log"))
    log = AuditLog(Settings(audit=said, data_dir=str(folder / "alone")), clock=SystemClock())
    about = Attributes("create", SERVICES, "", "v1", "services", "", "default")
    user = User("system:admin", "system:admin", (MASTERS, AUTHENTICATED))
    assert log.step is not None
    before = process_time()
    for each in log.kept:
        each.start()
    for _ in range(WRITTEN):
        request = cast(Request, Asked())
        log.step.begin(request, about, user)
        assert request.audit is not None
        request.audit.verdict = ALLOWED
        log.step.end(request, request.audit)
    for each in log.kept:
        each.stop()
    return 1e6 * (process_time() - before) / WRITTEN


def main(arguments: Sequence[str]) -> int:
    """Run the benchmark."""
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        policy = Path(first) / "policy.json"
        policy.write_text(json.dumps(POLICY))
        flags = ("--audit-policy-file", str(policy), "--audit-log-path", str(Path(first) / "audit.log"), *QUIET)
        with serving(Path(first), *flags) as audited, serving(Path(second), *QUIET) as plain:
            for served in (audited, plain):
                body = json.dumps({"metadata": {"name": "read"}, "data": {"a": "b"}}).encode()
                served.open("POST", "/api/v1/namespaces/default/configmaps", body)
            creates = compared(audited, plain, "POST", SERVICES, json.dumps(SERVICE), 201)
            reads = compared(audited, plain, "GET", READ, "", 200)
        alone = min(written_down(Path(first)) for _ in range(ROUNDS))
    claims = [
        Claim("create, and what writing it down takes", creates[1] + alone, creates[1], 1.05, "us", at_most=True),
        Claim("create of a Service, audited at Metadata", *creates, 1.05, "us", at_most=True),
        Claim("GET that a policy lets off", *reads, 1.03, "us", at_most=True),
    ]
    return report(claims, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""The audit log: what it costs a create to be written down, and a read to be let off.

A server is given the same requests by two users in short turns: one whom the policy has written down, and one whom it
lets off; and then another server. What is compared is the processor time of the server's process for each request
(`bench.support.spending`): two processes of the same program differ by more than audit takes. Requests are written
down at level Metadata, into the log file and into the database that `ctrlmgr sql audit` asks. What is put into that
database a second later counts for whoever's turn it is then.

What audit does for a request is timed by itself as well, in this process and with its threads, and added to what the
create takes without; and so is the look at the policy that lets a read off.
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
from bench.support.spending import Asking, in_turns
from ctrlmgr.audit.record import Record
from ctrlmgr.authentication.header_lines import HeaderLines
from ctrlmgr.authentication.user import AUTHENTICATED, MASTERS, User
from ctrlmgr.authorization.attributes import Attributes
from ctrlmgr.authorization.authorizer import ALLOWED
from ctrlmgr.clock import SystemClock
from ctrlmgr.serve.auditing import AuditLog
from ctrlmgr.server.authn.parts import Told
from ctrlmgr.server.request import Request
from ctrlmgr.settings import Settings
from ctrlmgr.settings.audit import AuditSettings

TIMES = 5
SERVERS, TURNS = 8, 40
USERS = ("written", "let-off")
WRITTEN = 5000
"""Requests of which the steps of audit are timed by themselves; fewer than wait for the database at most."""
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
"""Controllers would write as well, as much as they come to: what is measured is the request."""
HEADERS = [(b"host", b"127.0.0.1"), (b"user-agent", b"kubectl/v1.36.2 (linux/amd64) kubernetes/0123456")]
SERVICES = "/api/v1/namespaces/default/services"
READ = "/api/v1/namespaces/default/configmaps/read"


def creates(number: int) -> tuple[float, float]:
    """Return what a create costs (microseconds of processor time) that is written down, and one that is let off.

    The `number` of the server that is asked says which of the two comes first.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with serving(folder, *options(folder)) as served:
            asked = [served._replace(token=user) for user in USERS]
            written, let_off = (
                Asking(each, each.request("POST", SERVICES, json.dumps(SERVICE)), 201) for each in asked
            )
            if number % 2:
                return in_turns(written, let_off, TURNS)
            others, ours = in_turns(let_off, written, TURNS)
            return ours, others


def create_to_let_off() -> Claim:
    """Compare creates that are written down with those that are let off, on one server after the other.

    Where a server's objects come to lie in memory makes a hundredth or two of a difference, the same for as long as it
    runs: the mean of several servers is compared.
    """
    written, let_off = (fmean(each) for each in zip(*(creates(number) for number in range(SERVERS)), strict=True))
    return Claim("create of a Service, audited at Metadata", written, let_off, 1.05, "us", at_most=True)


class Asked:
    """What the audit log looks at of a request."""

    uri, id, code, peer = SERVICES, b"0123", 201, "127.0.0.1"
    audit: Record | None = None

    def __init__(self) -> None:
        """Ask for a Service to be created."""
        self.told = Told()
        self.raw_headers = HeaderLines(HEADERS)


def _settings(folder: Path) -> Settings:
    said = AuditSettings(policy_file=str(folder / "policy.json"), log_path=str(folder / "alone.log"))
    return Settings(audit=said, data_dir=str(folder / "alone"))


def written_down(folder: Path) -> float:
    """Return the microseconds of processor time that writing down a create takes: its steps, and its threads."""
    log = AuditLog(_settings(folder), clock=SystemClock())
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


def let_off(folder: Path) -> float:
    """Return the microseconds of processor time that a look at the policy takes which lets a request off."""
    step = AuditLog(_settings(folder), clock=SystemClock()).step
    about = Attributes("get", READ, "", "v1", "configmaps", "", "default", "read")
    user = User("system:admin", "system:admin", (MASTERS, AUTHENTICATED))
    assert step is not None
    before = process_time()
    for _ in range(WRITTEN):
        step.begin(cast(Request, None), about, user)
    return 1e6 * (process_time() - before) / WRITTEN


def options(folder: Path) -> Sequence[str]:
    """Return what to serve with, having put into `folder` the policy and the tokens of `USERS`: their names."""
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
            seconds, answers = Asking(served, served.request("GET", READ)).spent()
        alone = min(written_down(folder) for _ in range(TIMES))
        look = min(let_off(folder) for _ in range(TIMES))
    read = 1e6 * seconds / answers
    claims = [
        Claim("create, and what writing it down takes", create.limit + alone, create.limit, 1.05, "us", at_most=True),
        create,
        Claim("GET, and the look at a policy that lets it off", read + look, read, 1.03, "us", at_most=True),
    ]
    return report(claims, arguments)


if __name__ == "__main__":
    run(main, __doc__)

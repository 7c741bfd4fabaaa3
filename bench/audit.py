"""The audit log: what it costs a create to be written down, and a read to be let off.

Two servers, one with a policy and one without, are given the same requests in turns. What is compared is the processor
time of the server's process for each request: it is what audit takes from the others, and other loads on the machine
do not change it as they change a rate. The audited one writes every request at level Metadata into its log file and
into the database that `ctrlmgr sql audit` asks; reads of ConfigMaps are at level None.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench.api import SERVICE, load
from bench.report import Claim, report
from bench.served import Served, serving

CLIENTS = 4
SECONDS = 0.8
ROUNDS = 8
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
    claims = [
        Claim("create of a Service, audited at Metadata", *creates, 1.05, "us", at_most=True),
        Claim("GET that a policy lets off", *reads, 1.03, "us", at_most=True),
    ]
    return report(claims, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

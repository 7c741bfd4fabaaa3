"""Attacks a server and checks it: `python -m tests.robustness.attack.server_attack --inputs 50000`.

- Each input gets a response, and no response is an internal error. Status codes above 500 are allowed if the body is a
  Status: 501 for a transfer coding, 503 while a namespace or a CustomResourceDefinition is not established yet, 504 at
  a deadline. 500 is allowed if Kubernetes also responds with 500 (`_PASSED_ON`).
- No input uses more CPU seconds than `prices` allows. An input that seems to cost more is sent again, and its CPU time
  is compared with the current speed of the machine.
- Other clients get responses during the attack (see `waits`). No step of the event loop takes more than `TURN` CPU
  seconds.
- Responses to callers without rights contain no hidden data.
- After the attack, the resident memory of the server (VmRSS) is at most `GROWTH` times the memory before the attack.
  Before the attack, the server has handled `USED_FOR` requests of `USUAL_SIZES`, from all families, so that its caches
  and its heap are in their usual state. The server holds the same objects before and after the attack, because writes
  are dry runs, and the same number of past changes (`SETTINGS`).
- The controllers continue to run, with the same leader.

The script prints the results; the exit code is 1 if there is a violation.
"""

from __future__ import annotations

import argparse
import http.client
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from itertools import islice
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from tests.robustness.attack.callers import RIGHTLESS, grant, token_of, write_tokens
from tests.robustness.attack.inputs import (
    CERTIFICATES,
    LARGE_SIZES,
    REQUEST,
    SIZES,
    USUAL_SIZES,
    Input,
    Inputs,
)
from tests.robustness.attack.judges import prices
from tests.robustness.attack.judges.second_client import Measurement, children, second_client
from tests.robustness.attack.judges.waits import WaitJudge
from tests.robustness.attack.questions import prepare
from tests.robustness.attack.wire import converse, present
from tests.robustness.exchange import RequestAndResponse
from tests.robustness.faults import new_seed
from tests.robustness.hostile.raw import PATIENCE
from tests.robustness.places import on_sqlite
from tests.robustness.serving import ConfiguredServer
from tests.robustness.verdicts import say

TURN = 0.25
"""Seconds."""

GROWTH = 1.2
SETTINGS = "[watch_cache]\ncapacity = 500\n"
"""Settings that limit the number of past changes which the server keeps."""

USED_FOR = 4_000
"""The number of requests that the server handles before the attack."""

_TRIES = 3
http.client._MAXHEADERS = 1000  # type: ignore[attr-defined]  # warnings have a header each, as from Kubernetes

_PASSED_ON = ("failed to create typed patch object (", "The order in patch list:")
"""Prefixes of the messages that Kubernetes sends with status code 500: errors in a patch that Kubernetes' API server
does not convert.
"""

_GUARDED = ("/api/v1/", "/apis/apps/", "/apis/attacked.example.com/", "/ui/api/")
"""Strings that responses to callers without rights must not contain."""

_LONGEST_TURN = "ctrlmgr_event_loop_longest_turn_seconds"
_QUIET_FOR = 3.0
_SETTLED = 5.0
"""Seconds after the attack within which the server must return memory to the operating system."""

_CONTAINERS = {"containers": [{"name": "c", "image": "x", "ports": [{"containerPort": 80}], "args": ["a"]}]}
_TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": _CONTAINERS}
_SELECTED = {"selector": {"matchLabels": {"a": "b"}}, "template": _TEMPLATE}
_METADATA = {"name": "a", "labels": {"a": "b"}, "annotations": {"a": "b"}, "finalizers": ["example.com/a"]}
_IN = "namespaces/attack"
REQUEST_BODIES: Mapping[str, dict[str, Any]] = {
    f"/api/v1/{_IN}/pods": {
        "metadata": _METADATA,
        "spec": {
            **_CONTAINERS,
            "tolerations": [{"key": "a", "operator": "Exists", "tolerationSeconds": 5}],
            "volumes": [{"name": "v", "emptyDir": {}}],
            "terminationGracePeriodSeconds": 30,
        },
    },
    f"/api/v1/{_IN}/services": {"metadata": _METADATA, "spec": {"selector": {"a": "b"}, "ports": [{"port": 80}]}},
    f"/api/v1/{_IN}/configmaps": {"metadata": _METADATA, "data": {"a": "b"}, "binaryData": {"b": "YQ=="}},
    f"/api/v1/{_IN}/secrets": {"metadata": _METADATA, "data": {"a": "YQ=="}, "type": "Opaque"},
    f"/api/v1/{_IN}/endpoints": {
        "metadata": _METADATA,
        "subsets": [{"addresses": [{"ip": "192.0.2.1"}], "ports": [{"port": 80}]}],
    },
    "/api/v1/namespaces": {"metadata": {**_METADATA, "finalizers": []}},
    "/api/v1/nodes": {"metadata": _METADATA, "spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}},
    f"/apis/apps/v1/{_IN}/deployments": {"metadata": _METADATA, "spec": {**_SELECTED, "replicas": 1}},
    f"/apis/apps/v1/{_IN}/statefulsets": {"metadata": _METADATA, "spec": {**_SELECTED, "serviceName": "s"}},
    f"/apis/batch/v1/{_IN}/jobs": {
        "metadata": _METADATA,
        "spec": {"template": {"spec": {**_CONTAINERS, "restartPolicy": "Never"}}, "backoffLimit": 1},
    },
    f"/apis/discovery.k8s.io/v1/{_IN}/endpointslices": {
        "metadata": _METADATA,
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["192.0.2.1"], "conditions": {"ready": True}}],
        "ports": [{"name": "a", "port": 80}],
    },
    f"/apis/networking.k8s.io/v1/{_IN}/networkpolicies": {
        "metadata": _METADATA,
        "spec": {
            "podSelector": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]},
            "ingress": [{"from": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}}]}],
        },
    },
    f"/apis/rbac.authorization.k8s.io/v1/{_IN}/roles": {
        "metadata": _METADATA,
        "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"], "resourceNames": ["a"]}],
    },
    f"/apis/coordination.k8s.io/v1/{_IN}/leases": {
        "metadata": _METADATA,
        "spec": {"holderIdentity": "a", "leaseTransitions": 1, "leaseDurationSeconds": 5},
    },
    "/apis/authorization.k8s.io/v1/subjectaccessreviews": {
        "spec": {"user": "a", "groups": ["g"], "resourceAttributes": {"verb": "get", "resource": "pods"}}
    },
    "/apis/authentication.k8s.io/v1/tokenreviews": {"spec": {"token": "a.b.c", "audiences": ["x"]}},
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions": {
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": {"a": {"type": "string"}}}},
                }
            ],
        },
    },
}


class ServerAttack:
    """Attacks a server with generated inputs, and checks the server."""

    def __init__(self, server: ConfiguredServer) -> None:
        """Create the object that patches change, and its namespace."""
        self._server = server
        self._exchange = RequestAndResponse(server, "attack")
        self.answers: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.costs: Counter[str] = Counter()
        """CPU time in microseconds for each family of inputs, and the number of bytes sent."""
        self.dearest: tuple[float, str] = (0.0, "")
        """The highest ratio of an input's cost to the allowed cost, with the input's family."""
        server.create("/api/v1/namespaces", {"metadata": {"name": "attack"}})
        for resource, fields in (("configmaps", {"data": {"a": "b"}}), ("pods", {"spec": _CONTAINERS})):
            server.create(f"/api/v1/namespaces/attack/{resource}", {"metadata": {"name": "victim"}, **fields})
        large = {"metadata": {"name": "large"}, "data": {f"k{at}": "a: b" * 50 for at in range(1_500)}}
        server.create("/api/v1/namespaces/attack/configmaps", large)
        grant(server.create)
        prepare(server.create)

    def attack(self, inputs: Iterator[Input], count: int) -> None:
        """Send `count` inputs."""
        self._use()
        term, before, turn = self._term(), self._server.resident(), self._longest_turn()
        looks = SimpleQueue[Measurement]()
        waits = WaitJudge(self._quiet(), self._ask_again, partial(_next_of, looks))
        with second_client(self._server, looks.put) as other:
            self._send(inputs, count, waits)
        self.wrong += waits.complaints
        after = self._memory(until=before * GROWTH)
        if after > before * GROWTH:
            self.wrong.append(f"{after >> 20} MiB afterwards, {before >> 20} MiB before")
        if (longest := self._longest_turn()) > max(turn, TURN):
            self.wrong.append(f"a turn of the event loop took {longest:.3f} s of the processor")
        self._look_at_controllers(term)
        for what, worst in other.worst.items():
            figures = f"{worst.waited:.3f} s of {worst.took:.3f}; {waits.allowed[what]:.3f} may be"
            say(f"the slowest {what} of another client ({other.looks} looks) waited {figures}")
        say(f"{waits.passing} long waits did not come again; the longest turn took {longest:.3f} s, {turn:.3f} before")
        say(f"{before >> 20} MiB before, {after >> 20} MiB afterwards, x{after / before:.2f}")

    def _use(self) -> None:
        """Send usual requests of all types."""
        for each in islice(Inputs(REQUEST_BODIES, 0, USUAL_SIZES), USED_FOR):
            self._answer(each)

    def _send(self, inputs: Iterator[Input], count: int, waits: WaitJudge) -> None:
        for number, each in enumerate(islice(inputs, count)):
            waits.ask(each)
            self.send(each)
            waits.judge()
            if number % max(count // 20, 1) == 0:
                say(f"{number} inputs, {self._server.resident() >> 20} MiB, {len(self.wrong)} complaints")
        waits.judge_last()

    def send(self, given: Input) -> None:
        """Send one input, and check the response and the cost of the input."""
        allowed = prices.allowed(given)
        least = float("inf")
        for _ in range(_TRIES):
            began = self._processor()
            if not self._ask(given):
                return
            spent = self._processor() - began
            least = min(least, spent if spent <= allowed else spent / prices.slowness())
            if least <= allowed:
                break
        self.costs[given.family] += round(least * 1e6)
        self.costs[f"{given.family} bytes"] += given.size
        self.dearest = max(self.dearest, (least / allowed, given.family))
        if least > allowed:
            self._complain(given, f"{least:.2f} s of the processor for {given.size:,} bytes")

    def _ask(self, given: Input) -> bool:
        try:
            code, body = self._answer(given)
        except (OSError, http.client.HTTPException) as error:
            self._complain(given, f"no answer: {error!r}")
            return False
        self.answers[f"{given.family} {code}"] += 1
        if isinstance(code, int):
            self._judge_answer(given, code, body)
        return True

    def _ask_again(self, given: Input) -> None:
        with suppress(OSError, http.client.HTTPException):  # reported at the first attempt
            self._answer(given)

    def _answer(self, given: Input) -> tuple[int | str, bytes]:
        """Send an input as its caller; return the status code and the body of the response, or how the connection
        ended.
        """
        if given.is_a == CERTIFICATES:
            return present(self._server.site, given.body), b""
        if given.is_a != REQUEST:
            return converse(self._server.site, given.is_a, given.body, stays=given.stays), b""
        token = token_of(given.caller)
        headers = {"authorization": f"Bearer {token}" if token else "", **given.headers}
        return self._exchange.ask(given.method, given.path, given.body, headers)

    def _judge_answer(self, given: Input, code: int, body: bytes) -> None:
        if code >= 500 and not _is_meant(code, body):
            self._complain(given, f"{code} {body[:300]!r}")
        path = given.path.partition("?")[0]
        if (
            given.caller in RIGHTLESS
            and code < 300
            and path.startswith(_GUARDED)
            and "authorization" not in given.headers
        ):
            self._complain(given, f"{given.caller} is answered {code}")

    def _complain(self, given: Input, words: str) -> None:
        asked = f"{given.method} {given.path[:200]} {str(dict(given.headers))[:200]} {given.body[:300]!r}"
        shown = f"{given.caller}, {given.shape}: {asked}"
        self.wrong.append(f"{given.family}: {words}\n  {shown}")

    def _processor(self) -> float:
        """Return the CPU seconds that the server and its worker processes have used."""
        return sum(map(prices.processor, (self._server.pid, *children(self._server.pid))))

    def _memory(self, until: float) -> int:
        """Return the server's resident memory in bytes; wait a while until the memory is less than `until`."""
        ends_at = time.monotonic() + _SETTLED
        while (size := self._server.resident()) > until and time.monotonic() < ends_at:
            self._server.request("GET", "/readyz")
        return size

    def _quiet(self) -> dict[str, Measurement]:
        """Return the slowest GET and the slowest write of the second client while no other requests are sent."""
        with second_client(self._server) as other:
            ends_at = time.monotonic() + _QUIET_FOR
            while time.monotonic() < ends_at:
                time.sleep(0.1)
        return other.worst

    def _longest_turn(self) -> float:
        """Return the CPU seconds of the longest step of the server's event loop so far."""
        code, text = self._server.request("GET", "/metrics")
        assert code == 200, text
        lines = (line.split() for line in text.splitlines())
        return next(float(line[1]) for line in lines if line and line[0] == _LONGEST_TURN)

    def _term(self) -> Any:
        code, leases = self._server.request("GET", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases")
        assert code == 200, leases
        return [each["spec"].get("leaseTransitions") for each in leases["items"]]

    def _look_at_controllers(self, term: Any) -> None:
        if self._term() != term:
            self.wrong.append(f"the leader has changed: {term} before, {self._term()} now")
        self._server.create("/api/v1/namespaces", {"metadata": {"name": "afterwards"}})
        ends_at = time.monotonic() + PATIENCE
        while time.monotonic() < ends_at:
            if self._server.request("GET", "/api/v1/namespaces/afterwards/serviceaccounts/default")[0] == 200:
                return
        self.wrong.append("no controller has made the service account of a new namespace")

    def close(self) -> None:
        """Hang up."""
        self._exchange.close()


def _next_of(looks: SimpleQueue[Measurement], timeout: float) -> Measurement | None:
    with suppress(Empty):
        return looks.get(timeout=timeout) if timeout else looks.get_nowait()
    return None


def _is_meant(code: int, body: bytes) -> bool:
    """Return whether Kubernetes also sends this response with a status code of 500 or more."""
    try:
        fields = json.loads(body)
    except ValueError:
        return False
    if not isinstance(fields, dict) or fields.get("code") != code:
        return False
    return code != 500 or fields["message"].startswith(_PASSED_ON)


def main() -> int:
    """Run the attack with the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=50_000, help="how many")
    parser.add_argument("--seed", type=int, help="for repeating a run")
    arguments = parser.parse_args()
    seed = new_seed() if arguments.seed is None else arguments.seed
    say(f"seed {seed}")
    with tempfile.TemporaryDirectory(prefix="ctrlmgr-attack-") as folder:
        return 1 if attack_server(Path(folder), seed, arguments.inputs, LARGE_SIZES) else 0


def attack_server(folder: Path, seed: int, count: int, sizes: tuple[int, ...] = SIZES) -> list[str]:
    """Attack a new server with `count` inputs; return the violations."""
    tokens, setting = folder / "tokens.csv", on_sqlite(folder, settings=SETTINGS)
    write_tokens(tokens)
    server = ConfiguredServer(
        folder, "--database", setting.database, "--token-auth-file", str(tokens), settings=setting.settings
    )
    try:
        server.start()
        attack = ServerAttack(server)
        attack.attack(iter(Inputs(REQUEST_BODIES, seed, sizes)), count)
        attack.close()
        server.stop()
        tracebacks = server.log.split("Traceback")[1:]
        wrong = [*attack.wrong, *(f"Traceback{each[:3000]}" for each in tracebacks)]
        for each in wrong:
            say(f"WRONG {each}")
        say(", ".join(f"{number} {answer}" for answer, number in sorted(attack.answers.items())))
        for family in sorted({each for each in attack.costs if f"{each} bytes" in attack.costs}):
            spent, size = attack.costs[family] / 1e6, attack.costs[f"{family} bytes"] / 1e6
            say(f"  {family:16} {size:7.2f} MB {spent:7.2f} s of the processor")
        say(f"{count} inputs, {len(wrong)} complaints; the dearest ({attack.dearest[1]}) cost {attack.dearest[0]:.0%}")
        return wrong
    finally:
        server.close()


if __name__ == "__main__":
    sys.exit(main())

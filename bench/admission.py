"""Measures the cost of admission: of all default plugins, of a quota, and of a webhook.

Another process, on another core, sends creates over keep-alive connections. The creates are durable (SQLite,
synchronous=FULL). The benchmark compares the processor time that the server needs for the creates
(`bench.support.spending`). The cost of a webhook is compared with a round trip: one POST of the same size over a
keep-alive connection.
"""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean, median

from bench.report import Claim, report, run
from bench.support.served import ROOM, Served, free_port, running, serving
from bench.support.spending import RequestSeries, in_turns
from ctrlmgr.admission.plugin_registry import PLUGINS

ASKED = 300
"""Number of single requests from which a median time is computed."""
PAIRS, TURNS = 4, 30
NO_CONTROLLERS = ("--controllers", "namespace-controller", *ROOM)
ALL_OFF = ("--disable-admission-plugins", ",".join(entry.name for entry in PLUGINS if entry.is_default))

SERVICE = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "s-{n}"},
    "spec": {"ports": [{"port": 80, "targetPort": 8080}], "selector": {"app": "web"}},
}
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p-{n}", "labels": {"app": "web"}},
    "spec": {
        "containers": [
            {"name": "c", "image": "example.invalid/c:1", "resources": {"requests": {"cpu": "1m", "memory": "1Mi"}}}
        ]
    },
}
KINDS = {"Pods": ("pods", POD), "Services": ("services", SERVICE)}
HARD = {"pods": "1000000", "requests.cpu": "100000", "services": "1000000", "count/configmaps": "1000000"}


def prepare(served: Served, namespace: str) -> None:
    """Create a namespace and the objects that a pod needs."""
    served.open("POST", "/api/v1/namespaces", json.dumps({"metadata": {"name": namespace}}).encode())
    account = json.dumps({"metadata": {"name": "default"}}).encode()
    served.open("POST", f"/api/v1/namespaces/{namespace}/serviceaccounts", account)


def creates(served: Served, namespace: str, plural: str, body: object) -> RequestSeries:
    """Return requests, each of which creates an object."""
    return RequestSeries(
        served, served.request("POST", f"/api/v1/namespaces/{namespace}/{plural}", json.dumps(body)), 201
    )


def compared(what: str, spent: float, least: float, goal: float) -> Claim:
    """Compare creates per second of the server's processor time, and print the time of one create in microseconds."""
    return Claim(what, 1e6 / spent, 1e6 / least, goal, "a CPU second")


def plugins_to_none() -> Iterator[Claim]:
    """Compare creates on servers with the default plugins with creates on as many servers without plugins."""
    taken: dict[str, list[tuple[float, float]]] = {kind: [] for kind in KINDS}
    for _ in range(PAIRS):
        with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
            with_all, without = Path(one), Path(other)
            with serving(with_all, *NO_CONTROLLERS) as ours, serving(without, *NO_CONTROLLERS, *ALL_OFF) as none:
                for each in (ours, none):
                    prepare(each, "plain")
                for kind, (plural, body) in KINDS.items():
                    asked, others = (creates(each, "plain", plural, body) for each in (ours, none))
                    taken[kind].append(in_turns(asked, others, TURNS))
    for kind, pairs in taken.items():
        spent, least = (fmean(each) for each in zip(*pairs, strict=True))
        yield compared(f"creates of {kind} with the default plugins, compared with no plugins", spent, least, 0.85)


def quota_to_none(served: Served) -> Iterator[Claim]:
    """Compare creates in a namespace with a quota with creates in a namespace without one."""
    prepare(served, "limited")
    prepare(served, "free")
    quota = {"metadata": {"name": "q"}, "spec": {"hard": HARD}}
    status = {"status": {"hard": HARD, "used": dict.fromkeys(HARD, "0")}}
    path = "/api/v1/namespaces/limited/resourcequotas"
    made = json.loads(served.open("POST", path, json.dumps(quota).encode()))
    served.open("PUT", f"{path}/q/status", json.dumps({**made, **status}).encode())
    for kind, (plural, body) in KINDS.items():
        limited, free = (creates(served, each, plural, body) for each in ("limited", "free"))
        yield compared(f"creates of {kind} with a quota, compared with no quota", *in_turns(limited, free), 0.75)


@contextmanager
def hook(folder: Path) -> Iterator[int]:
    """Run a webhook with the server's own certificate; yield the webhook's port."""
    port = free_port()
    with running([sys.executable, "-m", "bench.support.hook_server", str(port), str(folder)], folder / "hook.log"):
        time.sleep(0.5)
        yield port


class Timed:
    """A keep-alive connection that sends POSTs and measures the duration of each POST."""

    def __init__(self, port: int, authority: str, path: str, token: str) -> None:
        """Send POSTs to `path` of a server; `authority` is the file of the certificate authority to trust."""
        self._connection = http.client.HTTPSConnection(
            "127.0.0.1", port, context=ssl.create_default_context(cafile=authority)
        )
        self._path = path
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        self.taken: list[float] = []

    def ask(self, body: bytes) -> None:
        """Send one."""
        began = time.perf_counter()
        self._connection.request("POST", self._path, body, self._headers)
        answer = self._connection.getresponse()
        answer.read()
        self.taken.append(time.perf_counter() - began)
        assert answer.status in (200, 201), answer.status

    def milliseconds(self) -> float:
        """Return the median time of the requests, in seconds."""
        self._connection.close()
        return median(self.taken) * 1e3


def configure(served: Served, port: int) -> None:
    """Register the webhook for creates in one namespace."""
    bundle = base64.b64encode(Path(served.authority).read_bytes()).decode()
    hook = {
        "name": "bench.example.com",
        "clientConfig": {"url": f"https://127.0.0.1:{port}/", "caBundle": bundle},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["*"]}],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "hooked"}},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    collection = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    served.open("POST", collection, json.dumps({"metadata": {"name": "bench"}, "webhooks": [hook]}).encode())


def webhook_to_round_trip(served: Served, folder: Path) -> Claim:
    """Compare the additional time of a create with a webhook with the time of a bare round trip to the webhook.

    All creates are dry runs, so the disk does not affect the comparison. Creates with a webhook, creates without one,
    and bare round trips alternate.
    """
    for namespace in ("hooked", "unhooked"):
        prepare(served, namespace)
    review = json.dumps({"request": {"uid": "u", "object": "x" * 900}}).encode()
    body = json.dumps({"metadata": {"name": "m"}}).encode()
    with hook(folder) as port:
        configure(served, port)
        hooked, unhooked = (
            Timed(served.port, served.authority, f"/api/v1/namespaces/{each}/configmaps?dryRun=All", served.token)
            for each in ("hooked", "unhooked")
        )
        bare = Timed(port, served.authority, "/", "")
        for _ in range(ASKED):
            unhooked.ask(body)
            hooked.ask(body)
            bare.ask(review)
        before, after, trip = (each.milliseconds() for each in (unhooked, hooked, bare))
    print(f"create without {before:.2f} ms, with a webhook {after:.2f} ms; bare round trip {trip:.2f} ms")
    return Claim(
        "time of a webhook call, without the network round trip",
        (after - before - trip) * 1e3,
        1e3,
        1.0,
        "us",
        at_most=True,
    )


def main(arguments: Sequence[str]) -> int:
    """Run the benchmark."""
    claims = list(plugins_to_none())
    with tempfile.TemporaryDirectory() as one, serving(Path(one), *NO_CONTROLLERS) as served:
        claims += quota_to_none(served)
        claims.append(webhook_to_round_trip(served, Path(one)))
    return report(claims, arguments)


if __name__ == "__main__":
    run(main, __doc__)

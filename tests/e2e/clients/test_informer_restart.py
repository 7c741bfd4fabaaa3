"""Tests that informers of every kind keep following while the server is stopped and killed during writes.

The events of each informer are compared with the log: no event may be missing or repeated, the order must be the order
of the log, and objects must equal the stored objects.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

from ctrlmgr.api.resource import LEASES, SERVICES, Resource
from ctrlmgr.clock import SystemClock
from ctrlmgr.eventlog import Event, EventType, open_log
from tests.background import DEADLINE, background
from tests.e2e.clients.client_go import Unstructured
from tests.e2e.clients.reflector import METADATA_FORM, TABLE_FORM, TYPED_FORM, ReflectedEvent, Reflector, Representation
from tests.e2e.load import LABELS, LAST, Writer
from tests.e2e.serving import Server, until

WRITES = 25
"""The number of acknowledged writes of each writer after which the server is stopped again."""

ENDINGS = ("stop", "kill", "kill")
NAMESPACE = "load"


class Informer(NamedTuple):
    path: str
    resource: Resource
    form: Representation = TYPED_FORM
    streams: bool = True
    selector: str = ""


CONFIG_MAPS = Resource("", "configmaps")
WEB = "app=web"
INFORMERS = (
    Informer("/api/v1/configmaps", CONFIG_MAPS),
    Informer(f"/api/v1/namespaces/{NAMESPACE}/configmaps", CONFIG_MAPS, streams=False),
    Informer(f"/api/v1/namespaces/{NAMESPACE}/configmaps", CONFIG_MAPS, TABLE_FORM, streams=False),
    Informer("/api/v1/services", SERVICES, METADATA_FORM),
    Informer("/api/v1/services", SERVICES, selector=WEB),
    Informer("/apis/coordination.k8s.io/v1/leases", LEASES, streams=False, selector=WEB),
    Informer("/apis/coordination.k8s.io/v1/leases", LEASES, METADATA_FORM, streams=False),
)


def config_map(name: str) -> Unstructured:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"key": name}}


def service(name: str) -> Unstructured:
    spec = {"selector": LABELS, "ports": [{"port": 80, "protocol": "TCP", "targetPort": "http"}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def lease(name: str) -> Unstructured:
    spec = {"holderIdentity": name, "leaseDurationSeconds": 15, "renewTime": "2026-01-02T03:04:05.678901Z"}
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name}, "spec": spec}


WRITERS = (
    (f"/api/v1/namespaces/{NAMESPACE}/configmaps", config_map),
    (f"/api/v1/namespaces/{NAMESPACE}/services", service),
    (f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases", lease),
)


def run(server: Server) -> tuple[list[Writer], list[Reflector]]:
    """Run writers and informers while the server is restarted repeatedly."""
    writers = [Writer(server, path, make, seed) for seed, (path, make) in enumerate(WRITERS)]
    reflectors = [
        Reflector(server, informer.path, form=informer.form, streams=informer.streams, selector=informer.selector)
        for informer in INFORMERS
    ]

    writing = [background(writer.run) for writer in writers]

    def written(count: int) -> None:
        until(lambda: any(work.done() for work in writing) or all(len(each.acknowledged) >= count for each in writers))

    written(WRITES // 2)
    following = [background(partial(reflector.run, LAST)) for reflector in reflectors]
    for life, ending in enumerate(ENDINGS, start=1):
        written(life * WRITES)
        getattr(server, ending)()
        server.start()
    written((len(ENDINGS) + 1) * WRITES)
    for writer in writers:
        writer.stop()
    for done in (*writing, *following):
        done.result(DEADLINE)
    return writers, reflectors


def history(events: list[Event], informer: Informer) -> Iterator[ReflectedEvent]:
    """Yield the events that a watch from the beginning must send to an informer."""
    selected: dict[object, Unstructured] = {}
    for event in events:
        is_elsewhere = "/namespaces/" in informer.path and event.key.namespace != NAMESPACE
        if event.resource != informer.resource or is_elsewhere:
            continue
        old, obj = selected.pop(event.key, None), event.object.to_dict()
        is_selected = not informer.selector or obj["metadata"].get("labels", {}).items() >= LABELS.items()
        if event.type is not EventType.DELETED and is_selected:
            selected[event.key] = obj
            yield ReflectedEvent("MODIFIED" if old else "ADDED", event.revision, informer.form.shown(obj))
        elif old:
            metadata = {**old["metadata"], "resourceVersion": str(event.revision)}
            yield ReflectedEvent("DELETED", event.revision, informer.form.shown({**old, "metadata": metadata}))


def state(told: list[ReflectedEvent]) -> dict[tuple[str, str], Unstructured]:
    """Return the objects that exist after these events."""
    objects: dict[tuple[str, str], Unstructured] = {}
    for type_, _, obj in told:
        key = (obj["metadata"]["namespace"], obj["metadata"]["name"])
        objects[key] = obj
        if type_ == "DELETED":
            del objects[key]
    return objects


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'ctrlmgr.db'}"
    postgres: str = request.getfixturevalue("postgres_url")
    return postgres


# ssl raises this when a handshake is cut off
@pytest.mark.filterwarnings("ignore:unclosed <ssl.SSLSocket:ResourceWarning")
@pytest.mark.slow
@pytest.mark.timeout(300)  # the machine may be busy with other tests
def test_informers_receive_the_whole_history_across_restarts(url: str, tmp_path: Path) -> None:
    # The server does not write Leases, because the informers would miss writes after their end.
    own_leases = ("--leader-elect=false", "--feature-gates=APIServerIdentity=false")
    with closing(Server(tmp_path, "--database", url, *own_leases)) as server:
        server.start()
        code, answer = server.request("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        assert code == 201, answer
        writers, reflectors = run(server)
        server.stop()
    with closing(open_log(url, clock=SystemClock(), random=random.Random(1))) as log:
        events = list(log.scan())

    for informer, reflector in zip(INFORMERS, reflectors, strict=True):
        told = list(history(events, informer))
        before = [each for each in told if each.revision <= reflector.started_at]
        after = [each for each in told if each.revision > reflector.started_at]
        assert reflector.state == state(before), informer
        assert [each for each in reflector.history if each.type != "BOOKMARK"] == after, informer
        revisions = [each.revision for each in reflector.history]
        assert revisions == sorted(revisions), informer
        assert reflector.connections >= len(ENDINGS), informer
        assert len(after) > len(ENDINGS) * WRITES / 2, informer
    by_revision = {event.revision: event for event in events}
    gone = {event.object.uid for event in events if event.type is EventType.DELETED}
    for writer in writers:
        assert all(by_revision[revision].key.name == name for revision, name in writer.acknowledged)
        assert gone.issuperset(writer.deleted)

"""Tests of concurrent writes: they do not affect each other, each keeps its author, and they are committed in one
group.
"""

from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import LEASES, Key
from ctrlmgr.authentication.user import User
from ctrlmgr.client import EngineClient
from ctrlmgr.engine.request_options import Requester
from ctrlmgr.errors import ApiError, Conflict, Forbidden, LogUnavailable, NotFound
from ctrlmgr.eventlog.event import Author, EventType, Proposal
from tests.authorization.bootstrap.controllers import rights_of
from tests.controllers.log_cluster import LogCluster
from tests.engine.stage import Stage

NAMESPACE = "kube-node-lease"


def lease(name: str, holder: str, revision: int = 0) -> Object:
    metadata = {"name": name, "namespace": NAMESPACE}
    fields = {"kind": "Lease", "apiVersion": "coordination.k8s.io/v1", "metadata": metadata}
    obj = Object.from_dict({**fields, "spec": {"holderIdentity": holder}})
    return Object(obj.resource, obj.body, revision)


class Cluster(LogCluster):
    """Return the bodies of three Leases without holders."""

    def __init__(self) -> None:
        super().__init__()
        self.informers.informer(LEASES)
        self.informers.sync()
        namespace = {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": NAMESPACE}}
        self.put(Object.from_dict({**namespace, "status": {"phase": "Active"}}))
        self.put(*(lease(name, "") for name in "abc"))
        self._reach(0, 0)

    def read(self, name: str) -> Object:
        found = self.log.get(LEASES, Key(NAMESPACE, name))
        assert found is not None
        return found

    def wanted(self, name: str, holder: str) -> Object:
        return lease(name, holder, self.read(name).revision)

    def holders(self) -> dict[str, str]:
        return {each.name: each.to_dict()["spec"]["holderIdentity"] for each in self.log.snapshot(LEASES).objects}

    def clients(self) -> dict[str, EngineClient]:
        return {name: self.client(f"system:node:{name}") for name in "abc"}


def test_each_write_of_a_group_has_its_author() -> None:
    cluster = Cluster()
    head = cluster.log.head().revision
    clients = cluster.clients()
    writes = [(clients[name], cluster.wanted(name, f"of {name}")) for name in "abc"]
    outcomes = clients["a"].update_each(writes)
    assert [each.name for each in outcomes if isinstance(each, Object)] == ["a", "b", "c"]
    assert cluster.holders() == {"a": "of a", "b": "of b", "c": "of c"}
    events = cluster.log.events_after(head)
    assert [each.actor for each in events] == ["system:node:a", "system:node:b", "system:node:c"]
    assert len({each.append_id for each in events}) == 3


def test_a_refused_write_does_not_affect_the_others() -> None:
    cluster = Cluster()
    clients = cluster.clients()
    late = cluster.wanted("b", "late")
    cluster.put(lease("b", "another"))
    cluster.log.append([Proposal(EventType.DELETED, cluster.read("c"), None)], author=Author("client"))
    writes = [(clients["a"], cluster.wanted("a", "held")), (clients["b"], late), (clients["c"], lease("c", "x", 1))]
    outcomes = clients["a"].update_each(writes)
    assert [type(each) for each in outcomes] == [Object, Conflict, NotFound]
    assert cluster.holders() == {"a": "held", "b": "another"}


def test_an_unauthorized_write_is_refused_alone() -> None:
    cluster = Cluster()
    stranger = EngineClient(
        cluster.engine,
        cluster.clients()["a"]._run,
        Requester("stranger"),
        rights=rights_of(User("stranger")),
    )
    writes = [(stranger, cluster.wanted("a", "x")), (cluster.clients()["b"], cluster.wanted("b", "held"))]
    outcomes = cluster.clients()["c"].update_each(writes)
    assert isinstance(outcomes[0], Forbidden)
    assert cluster.holders() == {"a": "", "b": "held", "c": ""}


def test_an_unavailable_log_raises_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster()
    client = cluster.clients()["a"]

    def away(*args: Any, **more: Any) -> Any:
        raise LogUnavailable("the disk is full")

    wanted = cluster.wanted("a", "x")
    monkeypatch.setattr(cluster.log, "submit", away)
    with pytest.raises(LogUnavailable, match="the disk is full"):
        client.update_each([(client, wanted)])


def test_a_renewed_lease_equals_a_write_on_the_full_path() -> None:
    def stored(*, canonical: bool) -> dict[str, Any]:
        stage = Stage()
        stage.namespace(NAMESPACE)
        client = EngineClient(
            stage.engine, lambda operation, cause=None, fence=None: stage.driver.run(operation), Requester("n")
        )
        spec = {"holderIdentity": "n", "leaseDurationSeconds": 40, "renewTime": "2026-01-01T00:00:00.000000Z"}
        first = client.create(Object.from_dict({**lease("n", "n").to_dict(), "spec": spec}))
        stage.clock.step(10)
        fields = {**first.to_dict(), "spec": {**spec, "renewTime": "2026-01-01T00:00:10.000000Z"}}
        writer = client.of_canonical_objects() if canonical else client
        answer = writer.update_each([(writer, Object.from_dict(fields))])[0]
        assert not isinstance(answer, ApiError)
        found: dict[str, Any] = answer.to_dict()
        return {**found, "metadata": {**found["metadata"], "uid": ""}}

    assert stored(canonical=True) == stored(canonical=False)

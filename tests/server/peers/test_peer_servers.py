"""Tests of the peers that identity Leases name: their addresses, and which of them are alive."""

from __future__ import annotations

import ssl

import pytest

from ctrlmgr.api.object import Object
from ctrlmgr.clock import format_time
from ctrlmgr.controllers.apiserver_identity.identity_lease import renewed_lease
from ctrlmgr.engine.calls.endpoint import Unresolved
from ctrlmgr.eventlog.event import Event
from ctrlmgr.server.aggregating.extension_servers import TransportUnusable
from ctrlmgr.server.peers.peer_servers import LIFETIME, Peer, PeerServers
from ctrlmgr.testing.eventlog_contract import add, modify, remove
from tests.engine.watch_cache.test_cacher import CachedLog


class Leases(CachedLog):
    """A log with identity Leases, and the peers that the process `own` finds in them."""

    def __init__(self, certificate: bytes = b"") -> None:
        super().__init__()
        self.peers = PeerServers(self.cacher, "own", lambda: certificate, "", clock=self.clock)
        self.changes = 0
        self.peers.on_change(self.count)

    def count(self) -> None:
        self.changes += 1

    def lease(self, name: str, address: str = "192.0.2.1:6443", *, age: int = 0) -> Event:
        renewed = self.clock.now() - age * 1_000_000
        fields = renewed_lease(name, "host", f"{name}-holder", None, renewed, peer_address=address).to_dict()
        [event] = self.put(add(Object.from_dict({**fields, "metadata": {**fields["metadata"], "uid": name}})))
        self.peers.refresh()
        return event

    def renew(self, event: Event) -> None:
        fields = event.object.to_dict()
        fields["spec"]["renewTime"] = format_time(self.clock.now())
        self.put(modify(Object.from_dict(fields), event.revision))
        self.peers.refresh()

    @property
    def only(self) -> Peer:
        [peer] = self.peers.services.values()
        return peer


@pytest.fixture
def leases() -> Leases:
    return Leases()


def test_all_processes_but_this_one_are_peers(leases: Leases) -> None:
    leases.lease("own")
    assert (leases.peers.services, leases.changes) == ({}, 0)
    leases.lease("other")
    leases.lease("another", "[2001:db8::1]:443")
    assert leases.peers.services == {
        ("another", "another-holder"): Peer("another", "another-holder", "2001:db8::1", 443),
        ("other", "other-holder"): Peer("other", "other-holder", "192.0.2.1", 6443),
    }
    assert leases.changes == 2


def test_a_deleted_lease_is_no_peer(leases: Leases) -> None:
    event = leases.lease("other")
    leases.put(remove(event.object, event.revision))
    leases.peers.refresh()
    assert (leases.peers.services, leases.changes) == ({}, 2)


def test_a_renewed_lease_keeps_its_process_alive(leases: Leases) -> None:
    event = leases.lease("other")
    leases.clock.step(LIFETIME - 1)
    assert leases.peers.is_alive(leases.only)
    leases.renew(event)
    leases.clock.step(LIFETIME - 1)
    assert leases.peers.is_alive(leases.only)
    assert leases.changes == 1
    leases.clock.step(1)
    assert not leases.peers.is_alive(leases.only)
    with pytest.raises(Unresolved, match="has not renewed its Lease for 15 s"):
        leases.peers.upstream(leases.only)


def test_a_process_killed_before_our_start_is_not_alive(leases: Leases) -> None:
    leases.lease("other", age=100)
    assert not leases.peers.is_alive(leases.only)


@pytest.mark.parametrize("address", ["", "192.0.2.1", "192.0.2.1:https"])
def test_a_lease_without_a_valid_address_names_no_address(leases: Leases, address: str) -> None:
    leases.lease("other", address)
    assert not leases.peers.is_alive(leases.only)


def test_the_certificate_of_a_peer_must_have_the_name_of_the_service(leases: Leases) -> None:
    leases.lease("other")
    upstream = leases.peers.upstream(leases.only)
    assert (upstream.host, upstream.port, upstream.server_name) == ("192.0.2.1", 6443, "kubernetes.default.svc")
    assert upstream.tls is not None
    assert upstream.tls.verify_mode is ssl.CERT_REQUIRED
    assert leases.peers.upstream(leases.only).tls is upstream.tls


def test_an_unusable_client_certificate_is_an_error() -> None:
    leases = Leases(b"no certificate")
    leases.lease("other")
    with pytest.raises(TransportUnusable):
        leases.peers.upstream(leases.only)

"""Provides the signing keys of controllers, and the controllers that publish a server's identity."""

from __future__ import annotations

import socket

from ctrlmgr.authentication.user import User
from ctrlmgr.authorization.attributes import Attributes
from ctrlmgr.authorization.authorizer import Authorizer
from ctrlmgr.controllers.apiserver_identity.controller import Server, new_identity_publisher, new_lease_collector
from ctrlmgr.controllers.apiserver_identity.identity_lease import identity_of_server
from ctrlmgr.controllers.certificatesigningrequest_signing.signing_requests import CSRS
from ctrlmgr.controllers.cluster_authentication.controller import new_cluster_authentication_publisher
from ctrlmgr.controllers.issuer_dependencies import Identity
from ctrlmgr.engine.features.gates import is_on
from ctrlmgr.manager import Controller, Hooks
from ctrlmgr.serve.controllers import Parts
from ctrlmgr.serve.front import Front
from ctrlmgr.server import Backend
from ctrlmgr.settings import Settings


def identity_of(front: Front, backend: Backend, authorizer: Authorizer) -> Identity:
    """Return the signing keys and the authorizer of one process's controllers.

    `authorizer` is called on the event loop that runs `backend`.
    """

    def may_ask(user: User, subresource: str) -> bool:
        attributes = Attributes("create", "", CSRS.group, "*", CSRS.plural, subresource)
        return backend.wait_for(authorizer.ask(user, attributes)).allows

    keys, files = front.authentication.keys, front.files
    return Identity(lambda: keys.kept, files.authority, files.authority_key, may_ask)


def cluster_authentication(parts: Parts, front: Front) -> Controller:
    """Return the controller that publishes this server's authentication settings; every serving process runs it."""
    return new_cluster_authentication_publisher(
        parts.informers,
        parts.apiserver_client(),
        parts.event_log,
        own=front.authentication.published,
        clock=parts.clock,
        random=parts.random,
    )


def add_identity_hooks(hooks: Hooks, parts: Parts, peer_address: str) -> None:
    """Register the hooks of identity Leases; none if the gate `APIServerIdentity` is off.

    Other processes reach this one at `peer_address` (HOST:PORT); it is empty if they do not forward requests.
    """
    if is_on("APIServerIdentity"):
        server = Server(*_place(parts.settings), peer_address)
        client, log = parts.apiserver_client(), parts.event_log
        publisher = new_identity_publisher(server, client, log, clock=parts.clock, random=parts.random)
        hooks.add_post_start("start-kube-apiserver-identity-lease-controller", publisher)
        if peer_address:
            hooks.add_post_start("peer-endpoint-reconciler-controller", is_finished=lambda: publisher.is_published)
        collector = new_lease_collector(client, log, clock=parts.clock, random=parts.random)
        hooks.add_post_start("start-kube-apiserver-identity-lease-garbage-collector", collector)


def server_identity(settings: Settings) -> str:
    """Return the identity of this server process; the identity is the name of the process's Lease."""
    return identity_of_server(*_place(settings))


def _place(settings: Settings) -> tuple[str, int]:
    return socket.gethostname(), settings.server.address[1]

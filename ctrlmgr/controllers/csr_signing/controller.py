"""The signing controller: gives approved requests their certificates.

Guarantees: each request is signed by the authority of the signer that it names, once; what a signer does not give
fails with the condition `Failed`. Requests for other signers are left to theirs.

Rules: `pkg/controller/certificates/signer/signer.go`.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping
from random import Random
from typing import Final

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key
from ctrlmgr.client import Client, EngineClient
from ctrlmgr.clock import Clock, format_time_seconds
from ctrlmgr.controllers.csr_signing.authority import SERIAL_BITS, SigningAuthority
from ctrlmgr.controllers.csr_signing.decide import Order, decide
from ctrlmgr.controllers.csr_signing.requests import CSRS, SigningRequest, with_condition, with_status
from ctrlmgr.errors import NotFound
from ctrlmgr.eventlog import EventLog, EventType
from ctrlmgr.informer import Change, Informers, Lister
from ctrlmgr.manager import Controller, Watch

CONTROLLER_NAME: Final = "certificatesigningrequest-signing-controller"


class Signer:
    """Sees to the request that is its key."""

    def __init__(
        self,
        requests: Lister,
        authorities: Mapping[str, Callable[[], SigningAuthority]],
        longest: int,
        *,
        clock: Clock,
        random: Random,
    ) -> None:
        """Sign for the signers that `authorities` has, for `longest` seconds at most."""
        self._requests = requests
        self._authorities = authorities
        self._longest = longest
        self._clock = clock
        self._random = random

    def reconcile(self, key: Key, client: Client) -> None:
        """Sign it, or say why not; raises ValueError when the authority cannot, and what `client` raises."""
        request = self._requests.get(key)
        if request is None:
            return
        view = request.view(SigningRequest)
        authority = self._authorities.get(view.spec.signer_name)
        decided = decide(view, self._longest) if authority is not None else None
        if decided is None or authority is None:
            return
        signed = (
            self._failed(request, decided) if isinstance(decided, str) else self._signed(request, decided, authority)
        )
        try:
            client.update(signed, "status")
        except NotFound:
            return  # it was withdrawn meanwhile

    def _signed(self, request: Object, order: Order, authority: Callable[[], SigningAuthority]) -> Object:
        certificate = authority().sign(
            order.request,
            order.usages,
            order.seconds,
            now=self._clock.now(),
            serial=self._random.getrandbits(SERIAL_BITS),
        )
        return with_status(request, certificate=b64encode(certificate).decode())

    def _failed(self, request: Object, reason: str) -> Object:
        condition = {"type": "Failed", "status": "True", "reason": "SignerValidationFailure", "message": reason}
        return with_condition(request, {**condition, "lastUpdateTime": format_time_seconds(self._clock.now())})


def request_keys(change: Change) -> Iterable[Key]:
    """Return the key of a request that came or has changed."""
    return () if change.type is EventType.DELETED else (change.object.key,)


def new_csr_signing_controller(
    informers: Informers,
    client: EngineClient,
    event_log: EventLog,
    *,
    authorities: Mapping[str, Callable[[], SigningAuthority]],
    longest: int,
    clock: Clock,
    random: Random,
) -> Controller:
    """Put the controller together; ask before `informers` sync. `authorities` are by the name of their signer."""
    requests = informers.informer(CSRS)
    return Controller(
        CONTROLLER_NAME,
        Signer(requests.lister, authorities, longest, clock=clock, random=random),
        watches=[Watch(requests, request_keys, after_sync=True)],
        client=client,
        log=event_log,
        clock=clock,
        random=random,
        workers=1,
    )

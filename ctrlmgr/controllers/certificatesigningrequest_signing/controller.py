"""The CSR signing controller: issues certificates for approved CertificateSigningRequests.

Guarantees: each request is signed once, by the certificate authority of its signer. A request that its signer does not
allow gets the condition `Failed`. Requests for signers outside `kubernetes.io` are ignored.

Source: `pkg/controller/certificates/signer/signer.go`.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from random import Random

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key
from ctrlmgr.client import Client
from ctrlmgr.clock import Clock, format_time_seconds
from ctrlmgr.controllers.assembly import assemble
from ctrlmgr.controllers.certificatesigningrequest_signing import DESCRIPTOR, Options
from ctrlmgr.controllers.certificatesigningrequest_signing.authority import SERIAL_BITS, SigningAuthority
from ctrlmgr.controllers.certificatesigningrequest_signing.authority_files import AuthorityFiles
from ctrlmgr.controllers.certificatesigningrequest_signing.decide import SigningOrder, decide
from ctrlmgr.controllers.certificatesigningrequest_signing.signing_requests import (
    CLIENT_SIGNER,
    CSRS,
    KUBELET_CLIENT_SIGNER,
    KUBELET_SERVING_SIGNER,
    LEGACY_SIGNER,
    SigningRequest,
    with_condition,
    with_status,
)
from ctrlmgr.controllers.descriptor import ControllerContext
from ctrlmgr.controllers.issuer_dependencies import Identity, IdentityContext
from ctrlmgr.errors import NotFound, SettingsError
from ctrlmgr.eventlog import EventType
from ctrlmgr.informer import Change, Lister
from ctrlmgr.manager import Controller, Watch


class Signer:
    """Reconciles a CertificateSigningRequest, whose name is the key."""

    def __init__(
        self,
        requests: Lister,
        authorities: Mapping[str, Callable[[], SigningAuthority]],
        longest: int,
        *,
        clock: Clock,
        random: Random,
    ) -> None:
        """Create a reconciler that signs with `authorities`, the certificate authorities by signer name.

        A certificate is valid for at most `longest` seconds.
        """
        self._requests = requests
        self._authorities = authorities
        self._longest = longest
        self._clock = clock
        self._random = random

    def reconcile(self, key: Key, client: Client) -> None:
        """Sign the request, or set its condition Failed.

        Raises ValueError if the request cannot be parsed, and the errors of `client`.
        """
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
            return  # The request was deleted meanwhile.

    def _signed(self, request: Object, order: SigningOrder, authority: Callable[[], SigningAuthority]) -> Object:
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
    """Return the key of the request if the change created or changed it."""
    return () if change.type is EventType.DELETED else (change.object.key,)


def new_csr_signing_controller(
    context: ControllerContext, authorities: Mapping[str, Callable[[], SigningAuthority]], longest: int
) -> Controller:
    """Build the controller.

    `authorities` are the certificate authorities by signer name; `longest` is the maximum lifetime of certificates in
    seconds.
    """
    requests = context.informers.informer(CSRS)
    signer = Signer(requests.lister, authorities, longest, clock=context.clock, random=context.random)
    return assemble(DESCRIPTOR, context, signer, [Watch(requests, request_keys, after_sync=True)])


def signing_authorities(options: Options, identity: Identity) -> dict[str, Callable[[], SigningAuthority]]:
    """Return the certificate authorities by signer name.

    Raises `SettingsError` if files are unusable, or if only one of certificate and key is given.
    """
    pairs = {
        CLIENT_SIGNER: (
            options.cluster_signing_kube_apiserver_client_cert_file,
            options.cluster_signing_kube_apiserver_client_key_file,
        ),
        KUBELET_CLIENT_SIGNER: (
            options.cluster_signing_kubelet_client_cert_file,
            options.cluster_signing_kubelet_client_key_file,
        ),
        KUBELET_SERVING_SIGNER: (
            options.cluster_signing_kubelet_serving_cert_file,
            options.cluster_signing_kubelet_serving_key_file,
        ),
        LEGACY_SIGNER: (
            options.cluster_signing_legacy_unknown_cert_file,
            options.cluster_signing_legacy_unknown_key_file,
        ),
    }
    usual = options.cluster_signing_cert_file, options.cluster_signing_key_file
    files: dict[tuple[Path, Path], AuthorityFiles] = {}
    found: dict[str, Callable[[], SigningAuthority]] = {}
    for signer, named in pairs.items():
        certificate, key = named if any(named) else usual
        if bool(certificate) != bool(key):
            raise SettingsError(f"controllers: {signer} needs a certificate and a key, or neither")
        pair = (Path(certificate), Path(key)) if certificate else (identity.authority, identity.authority_key)
        if pair not in files:
            files[pair] = AuthorityFiles(*pair)
        found[signer] = files[pair].current
    return found


def build(context: IdentityContext, options: Options) -> Controller:
    """Build the controller from its context and options."""
    authorities = signing_authorities(options, context.identity)
    return new_csr_signing_controller(context, authorities, longest=round(options.cluster_signing_duration))

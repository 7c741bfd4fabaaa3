"""Certificates: who may approve requests for a signer and sign in its name, and which groups no one is certified in.

Guarantees: approving takes the verb `approve` on the signer, to write a certificate or conditions the verb `sign`; a
right for `DOMAIN/*` is one for all signers of that domain. The signer of clients certifies no one as a member of
`system:masters`.

Rules: Kubernetes' `plugin/pkg/admission/certificates/{approval,signing,subjectrestriction}` and
`pkg/apis/certificates/authorization`.
"""

from __future__ import annotations

from typing import ClassVar, Final

from ctrlmgr.admission.asking import author_of, verdict_of
from ctrlmgr.admission.certificate_subject import subject_of
from ctrlmgr.admission.plugin import Plugin
from ctrlmgr.api.resource import Resource
from ctrlmgr.authentication.user import MASTERS
from ctrlmgr.authorization import attributes as asked
from ctrlmgr.authorization.authorizer import Authorizer
from ctrlmgr.engine.attributes import Attributes, Verb
from ctrlmgr.engine.operations import Operation

REQUESTS: Final = Resource("certificates.k8s.io", "certificatesigningrequests")
CLIENT_SIGNER: Final = "kubernetes.io/kube-apiserver-client"

_DECIDED = ("certificate", "conditions")


class _Guarded(Plugin):
    """Asks for a right to the signer of a request."""

    verb: ClassVar[str]
    subresource: ClassVar[str]

    def __init__(self, authorizer: Authorizer) -> None:
        """Ask `authorizer`."""
        self._authorizer = authorizer

    def handles(self, resource: Resource, subresource: str, operation: Verb) -> bool:
        """Look at writes to one subresource of requests."""
        return resource == REQUESTS and subresource == self.subresource and operation is Verb.UPDATE

    def _check(self, attributes: Attributes) -> Operation[None]:
        """Refuse with `Forbidden` what takes a right that the author lacks."""
        user = author_of(attributes)
        signer = ((attributes.old or {}).get("spec") or {}).get("signerName") or ""
        for name in (signer, f"{signer.partition('/')[0]}/*"):
            question = asked.Attributes(self.verb, "", REQUESTS.group, "*", "signers", name=name)
            if (yield from verdict_of(self._authorizer, user, question)).allows:
                return
        raise attributes.forbidden(f'user not permitted to {self.verb} requests with signerName "{signer}"')


class CertificateApproval(_Guarded):
    """Lets requests be approved and denied by those who may do it for their signer."""

    name: ClassVar[str] = "CertificateApproval"
    verb = "approve"
    subresource = "approval"

    def validate(self, attributes: Attributes) -> Operation[None]:
        """Refuse a decision of others."""
        return self._check(attributes)


class CertificateSigning(_Guarded):
    """Lets certificates be given by those who may do it for the request's signer."""

    name: ClassVar[str] = "CertificateSigning"
    verb = "sign"
    subresource = "status"

    def validate(self, attributes: Attributes) -> Operation[None] | None:
        """Refuse a certificate or conditions of others; a status that says the same is anyone's."""
        new, old = attributes.fields.get("status") or {}, (attributes.old or {}).get("status") or {}
        if all((new.get(field) or None) == (old.get(field) or None) for field in _DECIDED):
            return None
        return self._check(attributes)


class CertificateSubjectRestriction(Plugin):
    """Keeps clients from being certified as those who may do everything."""

    name: ClassVar[str] = "CertificateSubjectRestriction"

    def handles(self, resource: Resource, subresource: str, operation: Verb) -> bool:
        """Look at new requests."""
        return resource == REQUESTS and not subresource and operation is Verb.CREATE

    def validate(self, attributes: Attributes) -> None:
        """Refuse a request for a member of that group."""
        spec = attributes.fields.get("spec") or {}
        if spec.get("signerName") != CLIENT_SIGNER:
            return
        subject = subject_of(spec.get("request") or "")
        if subject is not None and MASTERS in subject.organizations:
            raise attributes.forbidden(f"use of {CLIENT_SIGNER} signer with {MASTERS} group is not allowed")

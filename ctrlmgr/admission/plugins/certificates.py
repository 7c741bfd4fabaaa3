"""The certificate plugins restrict approval and signing by signer, and refuse certificates for `system:masters`.

Guarantees: approving a request requires the right to `approve` for its signer. Writing the certificate or the
conditions of a request requires the right to `sign` for its signer. A right for `DOMAIN/*` covers all signers of that
domain. The plugin refuses requests for client certificates of members of `system:masters`.

Source: Kubernetes' `plugin/pkg/admission/certificates/{approval,signing,subjectrestriction}` and
`pkg/apis/certificates/authorization`.
"""

from __future__ import annotations

from typing import ClassVar, Final

from ctrlmgr.admission.admission_plugin import Plugin
from ctrlmgr.admission.authorization_checks import author_of, verdict_of
from ctrlmgr.admission.certificate_subject import subject_of
from ctrlmgr.api.resource import Resource
from ctrlmgr.authentication.user import MASTERS
from ctrlmgr.authorization import attributes as asked
from ctrlmgr.authorization.authorizer import Authorizer
from ctrlmgr.engine.admission_attributes import Attributes, Verb
from ctrlmgr.engine.operations import Operation

REQUESTS: Final = Resource("certificates.k8s.io", "certificatesigningrequests")
CLIENT_SIGNER: Final = "kubernetes.io/kube-apiserver-client"

_DECIDED = ("certificate", "conditions")


class _SignerCheck(Plugin):
    """The common part of the certificate plugins: checks the user's right for the signer of a certificate request."""

    verb: ClassVar[str]
    subresource: ClassVar[str]

    def __init__(self, authorizer: Authorizer) -> None:
        """Check rights with `authorizer`."""
        self._authorizer = authorizer

    def handles(self, resource: Resource, subresource: str, operation: Verb) -> bool:
        """Return whether the plugin handles the write: writes to one subresource of CertificateSigningRequests."""
        return resource == REQUESTS and subresource == self.subresource and operation is Verb.UPDATE

    def _check(self, attributes: Attributes) -> Operation[None]:
        """Raise `Forbidden` if the user lacks the plugin's right for the signer of the certificate request."""
        user = author_of(attributes)
        signer = ((attributes.old or {}).get("spec") or {}).get("signerName") or ""
        for name in (signer, f"{signer.partition('/')[0]}/*"):
            question = asked.Attributes(self.verb, "", REQUESTS.group, "*", "signers", name=name)
            if (yield from verdict_of(self._authorizer, user, question)).allows:
                return
        raise attributes.forbidden(f'user not permitted to {self.verb} requests with signerName "{signer}"')


class CertificateApproval(_SignerCheck):
    """Allows approvals and denials only by users with the right to `approve` for the signer."""

    name: ClassVar[str] = "CertificateApproval"
    verb = "approve"
    subresource = "approval"

    def validate(self, attributes: Attributes) -> Operation[None]:
        """Raise `Forbidden` if the user may not approve the certificate request."""
        return self._check(attributes)


class CertificateSigning(_SignerCheck):
    """Allows certificates and conditions only from users with the right to `sign` for the signer."""

    name: ClassVar[str] = "CertificateSigning"
    verb = "sign"
    subresource = "status"

    def validate(self, attributes: Attributes) -> Operation[None] | None:
        """Raise `Forbidden` if the user may not sign the certificate request.

        A write that leaves the certificate and the conditions unchanged needs no right.
        """
        new, old = attributes.fields.get("status") or {}, (attributes.old or {}).get("status") or {}
        if all((new.get(field) or None) == (old.get(field) or None) for field in _DECIDED):
            return None
        return self._check(attributes)


class CertificateSubjectRestriction(Plugin):
    """Refuses client certificates that certify members of `system:masters`."""

    name: ClassVar[str] = "CertificateSubjectRestriction"

    def handles(self, resource: Resource, subresource: str, operation: Verb) -> bool:
        """Return whether the plugin handles the write: creations of CertificateSigningRequests."""
        return resource == REQUESTS and not subresource and operation is Verb.CREATE

    def validate(self, attributes: Attributes) -> None:
        """Raise `Forbidden` if the certificate request's subject has the group `system:masters`."""
        spec = attributes.fields.get("spec") or {}
        if spec.get("signerName") != CLIENT_SIGNER:
            return
        subject = subject_of(spec.get("request") or "")
        if subject is not None and MASTERS in subject.organizations:
            raise attributes.forbidden(f"use of {CLIENT_SIGNER} signer with {MASTERS} group is not allowed")

"""The certificate plugins restrict the use of signers, and refuse certificates for `system:masters`.

Guarantees: approving a request requires the right to `approve` for its signer. Writing the certificate or the
conditions of a request requires the right to `sign` for its signer. Writing a ClusterTrustBundle with a signer requires
the right to `attest` for the signer. A right for `DOMAIN/*` covers all signers of that
domain. The plugin refuses requests for client certificates of members of `system:masters`.

Source: Kubernetes' `plugin/pkg/admission/certificates/{approval,signing,ctbattest,subjectrestriction}` and
`pkg/apis/certificates/authorization`.
"""

from __future__ import annotations

from typing import ClassVar, Final

from ctrlmgr.admission.admission_plugin import Plugin
from ctrlmgr.admission.authorization_checks import author_of, verdict_of
from ctrlmgr.admission.certificate_subject import subject_of
from ctrlmgr.api.resource import Resource
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.authentication.user import MASTERS
from ctrlmgr.authorization import attributes as asked
from ctrlmgr.authorization.authorizer import Authorizer
from ctrlmgr.engine.admission_attributes import Attributes, Verb
from ctrlmgr.engine.features.gates import is_on
from ctrlmgr.engine.operations import Operation

BUNDLES: Final = Resource("certificates.k8s.io", "clustertrustbundles")
REQUESTS: Final = Resource("certificates.k8s.io", "certificatesigningrequests")
CLIENT_SIGNER: Final = "kubernetes.io/kube-apiserver-client"

_DECIDED = ("certificate", "conditions")
_OWNERSHIP = ("ownerReferences", "finalizers", "managedFields", "resourceVersion")
"""The metadata that the garbage collector changes, and metadata that changes with each write."""


class _SignerRight(Plugin):
    """The common part of plugins that check the user's right for a signer."""

    verb: ClassVar[str]

    def __init__(self, authorizer: Authorizer) -> None:
        """Check rights with `authorizer`."""
        self._authorizer = authorizer

    def _require(self, attributes: Attributes, signer: str, refusal: str) -> Operation[None]:
        """Raise `Forbidden` with the message `refusal` if the user lacks the plugin's right for a signer."""
        user = author_of(attributes)
        for name in (signer, f"{signer.partition('/')[0]}/*"):
            question = asked.Attributes(self.verb, "", REQUESTS.group, "*", "signers", name=name)
            if (yield from verdict_of(self._authorizer, user, question)).allows:
                return
        raise attributes.forbidden(refusal)


class _SignerCheck(_SignerRight):
    """The common part of plugins for certificate requests."""

    subresource: ClassVar[str]

    def handles(self, resource: Resource, subresource: str, operation: Verb) -> bool:
        """Return whether the plugin handles the write: writes to one subresource of CertificateSigningRequests."""
        return resource == REQUESTS and subresource == self.subresource and operation is Verb.UPDATE

    def _check(self, attributes: Attributes) -> Operation[None]:
        """Raise `Forbidden` if the user lacks the plugin's right for the signer of the certificate request."""
        signer = ((attributes.old or {}).get("spec") or {}).get("signerName") or ""
        refusal = f'user not permitted to {self.verb} requests with signerName "{signer}"'
        return self._require(attributes, signer, refusal)


class ClusterTrustBundleAttest(_SignerRight):
    """Allows ClusterTrustBundles of a signer only from users with the right to `attest` for the signer."""

    name: ClassVar[str] = "ClusterTrustBundleAttest"
    verb = "attest"

    def handles(self, resource: Resource, subresource: str, operation: Verb) -> bool:
        """Return whether the plugin handles the write: creations and updates of ClusterTrustBundles."""
        return resource == BUNDLES and operation in (Verb.CREATE, Verb.UPDATE) and is_on("ClusterTrustBundle")

    def validate(self, attributes: Attributes) -> Operation[None] | None:
        """Raise `Forbidden` if the user may not attest for the signer.

        An update that changes only owners and finalizers needs no right.
        """
        signer = (attributes.fields.get("spec") or {}).get("signerName") or ""
        if not signer:
            return None
        if attributes.old is not None and _without_ownership(attributes.fields) == _without_ownership(attributes.old):
            return None
        return self._require(attributes, signer, f'user not permitted to attest for signerName "{signer}"')


def _without_ownership(obj: Unstructured) -> Unstructured:
    metadata = {name: value for name, value in obj["metadata"].items() if name not in _OWNERSHIP}
    return {**obj, "metadata": metadata}


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

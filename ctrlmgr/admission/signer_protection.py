"""Allows statuses of PodCertificateRequests only from users with the right to `sign` for the signer.

Guarantees: this check is not a plugin, so it cannot be disabled. A status that does not change needs no right.

Source: `pkg/registry/certificates/podcertificaterequest/strategy.go` (`StatusStrategy`).
"""

from __future__ import annotations

from typing import Final

from ctrlmgr.admission.authorization_checks import author_of, verdict_of
from ctrlmgr.api.field import forbidden, refuse
from ctrlmgr.api.resource import Resource
from ctrlmgr.authorization import attributes as asked
from ctrlmgr.authorization.authorizer import Authorizer
from ctrlmgr.engine.admission_attributes import Admission, Attributes, Verb
from ctrlmgr.engine.operations import Operation
from ctrlmgr.golang.go_text import quote

REQUESTS: Final = Resource("certificates.k8s.io", "podcertificaterequests")


class GuardedSigners:
    """Admission that checks the author of a request's status; the wrapped admission makes all other decisions."""

    def __init__(self, admission: Admission, authorizer: Authorizer) -> None:
        """Check rights with `authorizer`."""
        self._admission = admission
        self._authorizer = authorizer

    def handles(self, resource: Resource, subresource: str, operation: Verb) -> bool:
        """Return whether this admission or the wrapped admission handles writes of this kind."""
        return (resource == REQUESTS and subresource == "status") or self._admission.handles(
            resource, subresource, operation
        )

    def wants_object(self, attributes: Attributes) -> bool:
        """Return whether this admission or the wrapped admission needs the object of the write."""
        return attributes.resource == REQUESTS or self._admission.wants_object(attributes)

    def admit(self, attributes: Attributes) -> Operation[None]:
        """Run the mutating admission of the wrapped admission."""
        return self._admission.admit(attributes)

    def validate(self, attributes: Attributes) -> Operation[None]:
        """Run validating admission; raises `Invalid` if the user may not sign for the signer of the request."""
        if attributes.resource != REQUESTS or attributes.subresource != "status":
            return self._admission.validate(attributes)
        return self._validate_status(attributes)

    def _validate_status(self, attributes: Attributes) -> Operation[None]:
        old = attributes.old or {}
        if (attributes.fields.get("status") or {}) != (old.get("status") or {}):
            yield from self._check_signer(attributes, (old.get("spec") or {}).get("signerName") or "")
        yield from self._admission.validate(attributes)

    def _check_signer(self, attributes: Attributes, signer: str) -> Operation[None]:
        user = author_of(attributes)
        for name in (signer, f"{signer.partition('/')[0]}/*"):
            question = asked.Attributes("sign", "", REQUESTS.group, "*", "signers", name=name)
            if (yield from verdict_of(self._authorizer, user, question)).allows:
                return
        words = f'User {quote(user.name)} is not permitted to "sign" for signer {quote(signer)}'
        errors = [forbidden("spec.signerName", words)]
        raise refuse(attributes.kind.name, attributes.kind.resource.group, attributes.name, errors)

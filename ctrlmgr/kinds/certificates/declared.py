"""The declarations of the kinds of `certificates.k8s.io`."""

from __future__ import annotations

from ctrlmgr.engine.managedfields.reset_fields import STATUS, all_but
from ctrlmgr.kinds.certificates import printers
from ctrlmgr.kinds.certificates.certificate_signing_request import CertificateSigningRequestStrategy
from ctrlmgr.kinds.kind_declaration import Declaration

_SPEC = ("spec",)

KINDS = (
    Declaration(
        "certificates.k8s.io/v1",
        "CertificateSigningRequest",
        strategy=CertificateSigningRequestStrategy(),
        printer=printers.CERTIFICATE_SIGNING_REQUEST,
        resets={
            "": all_but(_SPEC, STATUS),
            "status": all_but(_SPEC, ("status", "conditions")),
            "approval": all_but(_SPEC, ("status", "certificate")),
        },
    ),
)

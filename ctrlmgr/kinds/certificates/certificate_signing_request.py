"""The strategy of CertificateSigningRequests; the server sets the requesting user, and drops approvals by the client.

Source: Kubernetes' `pkg/registry/certificates/certificates/strategy.go`, `pkg/apis/certificates/validation` and, for
the field selector, `pkg/apis/certificates/v1/conversion.go`.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from ctrlmgr.api.field import FieldError, Path, duplicate, invalid, not_supported, required
from ctrlmgr.api.object import Object
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.strategy import Context, Strategy
from ctrlmgr.engine.validation import name_formats
from ctrlmgr.engine.validation.certificate_requests import problem
from ctrlmgr.kinds.certificates.certificate_signing_status import keep_decisions, stamp, validate_status
from ctrlmgr.kinds.signers import validate_signer_name

LEGACY_SIGNER = "kubernetes.io/legacy-unknown"
"""The signer name of requests without a signer in old API versions; v1 refuses this signer name."""

SHORTEST_DURATION = 600
"""The minimum duration of a certificate, in seconds."""

USAGES = frozenset(
    {
        "any",
        "cert sign",
        "client auth",
        "code signing",
        "content commitment",
        "crl sign",
        "data encipherment",
        "decipher only",
        "digital signature",
        "email protection",
        "encipher only",
        "ipsec end system",
        "ipsec tunnel",
        "ipsec user",
        "key agreement",
        "key encipherment",
        "microsoft sgc",
        "netscape sgc",
        "ocsp signing",
        "s/mime",
        "server auth",
        "signing",
        "timestamping",
    }
)
"""The usages that the key of a certificate may have (`pkg/apis/certificates/types.go`)."""

_REQUESTER = ("username", "uid", "groups", "extra")
_SPEC = Path("spec")


class _Spec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    signer_name: str = ""


class _Request(msgspec.Struct, frozen=True, gc=False):
    spec: _Spec = _Spec()


class CertificateSigningRequestStrategy(Strategy):
    """The strategy of the kind certificates.k8s.io/v1 CertificateSigningRequest."""

    name_check = staticmethod(name_formats.any_name)
    fields = ("spec.signerName",)

    def prepare_for_create(self, ctx: Context, obj: Unstructured) -> None:
        """Set the requesting user regardless of the request object's content, and drop any approval."""
        spec = {key: value for key, value in (obj.get("spec") or {}).items() if key not in _REQUESTER}
        extra = {key: list(values) for key, values in ctx.extra.items()}
        asks = {"username": ctx.user, "uid": ctx.uid, "groups": list(ctx.groups), "extra": extra}
        obj["spec"] = {**spec, **{field: value for field, value in asks.items() if value}}
        obj["status"] = {}

    def prepare_for_update(self, ctx: Context, new: Unstructured, old: Unstructured) -> None:
        """Keep the spec of the certificate signing request unchanged.

        Writes to `/approval` may change only conditions. Writes to `/status` may not change the conditions that approve
        or deny the request.
        """
        new["spec"] = old["spec"]
        status, before = new.get("status") or {}, old.get("status") or {}
        conditions, conditions_before = status.get("conditions") or (), before.get("conditions") or ()
        if ctx.subresource == "approval":
            status = before
        elif ctx.subresource == "status":
            conditions = keep_decisions(conditions, conditions_before)
        else:
            return
        stamped = stamp(conditions, conditions_before, ctx.now)
        new["status"] = {**({"conditions": stamped} if stamped else {}), **_without_conditions(status)}

    def validate(self, ctx: Context, obj: Unstructured) -> list[FieldError]:
        """Validate a new certificate signing request."""
        if ctx.old is not None:
            return []
        spec = obj["spec"]
        request = spec.get("request")
        words = problem(b64decode(request or ""))
        errors = [invalid(_SPEC.child("request"), request, words)] if words else []
        errors += _validate_usages(spec.get("usages") or (), _SPEC.child("usages"))
        errors += validate_signer_name(spec.get("signerName", ""), _SPEC.child("signerName"))
        if spec.get("signerName") == LEGACY_SIGNER:
            words = "the legacy signerName is not allowed via this API version"
            errors.append(invalid(_SPEC.child("signerName"), LEGACY_SIGNER, words))
        seconds = spec.get("expirationSeconds")
        if seconds is not None and seconds < SHORTEST_DURATION:
            words = "may not specify a duration less than 600 seconds (10 minutes)"
            errors.append(invalid(_SPEC.child("expirationSeconds"), seconds, words))
        return errors

    def validate_update(self, ctx: Context, new: Unstructured, old: Unstructured) -> list[FieldError]:
        """Validate a changed approval or certificate."""
        return validate_status(new.get("status") or {}, old.get("status") or {}, ctx.subresource)

    def selectable(self, obj: Object) -> Mapping[str, str]:
        """Return the name of the signer of a certificate signing request."""
        return {"spec.signerName": obj.view(_Request).spec.signer_name}


def _without_conditions(status: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in status.items() if name != "conditions"}


def _validate_usages(usages: Sequence[str], path: Path) -> list[FieldError]:
    if not usages:
        return [required(path)]
    errors = [not_supported(path.at(at), each, USAGES) for at, each in enumerate(usages) if each not in USAGES]
    seen: set[str] = set()
    for at, each in enumerate(usages):
        if each in seen:
            errors.append(duplicate(path.at(at), each))
        seen.add(each)
    return errors

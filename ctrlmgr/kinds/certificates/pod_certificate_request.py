"""The strategy of PodCertificateRequests, with which kubelets request certificates for the service accounts of pods.

Kubernetes serves the kind only if the version `certificates.k8s.io/v1beta1` is enabled and the feature gate
PodCertificateRequest is on.

Source: Kubernetes `pkg/registry/certificates/podcertificaterequest/strategy.go`, `pkg/apis/certificates/validation`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from ctrlmgr.api.field import FieldError, Path, invalid, too_long
from ctrlmgr.api.object import Object
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.managedfields.reset_fields import METADATA
from ctrlmgr.engine.strategy import Context
from ctrlmgr.engine.validation import name_formats
from ctrlmgr.engine.validation.object_meta import ANNOTATIONS_SIZE, IMMUTABLE
from ctrlmgr.kinds.certificates.key_proofs import validate_key
from ctrlmgr.kinds.certificates.pod_certificate_status import validate_status
from ctrlmgr.kinds.common_rules import domain_prefixed_key, each_problem
from ctrlmgr.kinds.signers import is_kubernetes_signer, validate_signer_name
from ctrlmgr.kinds.simple_strategies import GuardedStrategy

SHORTEST: Final = 3600
LONGEST: Final = 91 * 24 * 3600
LONGEST_OF_KUBERNETES: Final = 24 * 3600
"""The limits of `maxExpirationSeconds`; signers of Kubernetes issue certificates for a day at most."""
_DEFAULT: Final = 24 * 3600
_LONGEST_UID: Final = 128
_SPEC: Final = Path("spec")
_TEXTS: Final = ["signerName", "podName", "podUID", "serviceAccountName", "serviceAccountUID", "nodeName", "nodeUID"]
_REFERENCES: Final = (("podName", "podUID"), ("serviceAccountName", "serviceAccountUID"), ("nodeName", "nodeUID"))


class _Spec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    signer_name: str = ""
    pod_name: str = ""
    node_name: str = ""


class _Request(msgspec.Struct, frozen=True, gc=False):
    spec: _Spec = _Spec()


class PodCertificateRequestStrategy(GuardedStrategy):
    """certificates.k8s.io/v1beta1 PodCertificateRequest; field selectors can select by signer, pod and node."""

    revalidates = 0
    status_keeps = METADATA
    fields = ("spec.signerName", "spec.podName", "spec.nodeName")

    def default(self, obj: Unstructured) -> None:
        """Default the longest lifetime of the certificate to a day."""
        spec = obj.setdefault("spec", {})
        if spec.get("maxExpirationSeconds") is None:
            spec["maxExpirationSeconds"] = _DEFAULT

    def validate(self, ctx: Context, obj: Unstructured) -> list[FieldError]:
        """Validate the signer, the pod, its service account and node, the lifetime, and the proof of the key."""
        if ctx.old is not None:
            return []
        spec = obj["spec"]
        signer, seconds = spec.get("signerName") or "", spec["maxExpirationSeconds"]
        errors = validate_signer_name(signer, _SPEC.child("signerName"))
        errors += _validate_annotations(spec.get("unverifiedUserAnnotations") or {})
        for name, uid in _REFERENCES:
            errors += each_problem(name_formats.dns1123_subdomain, spec.get(name) or "", _SPEC.child(name))
            errors += _validate_uid(spec.get(uid) or "", _SPEC.child(uid))
        most = LONGEST_OF_KUBERNETES if is_kubernetes_signer(signer) else LONGEST
        if not SHORTEST <= seconds <= most:
            words = f"must be in the range [{SHORTEST}, {most}]"
            errors.append(invalid(_SPEC.child("maxExpirationSeconds"), seconds, words))
        return errors + validate_key(spec)

    def validate_update(self, ctx: Context, new: Unstructured, old: Unstructured) -> list[FieldError]:
        """Validate that the spec is unchanged, or the changed status."""
        if ctx.subresource == "status":
            return validate_status(new, old, ctx.now)
        return [] if new["spec"] == old["spec"] else [invalid(_SPEC, _internal(new["spec"]), IMMUTABLE)]

    def selectable(self, obj: Object) -> Mapping[str, str]:
        """Return the signer, the pod and the node of a request."""
        spec = obj.view(_Request).spec
        return {"spec.signerName": spec.signer_name, "spec.podName": spec.pod_name, "spec.nodeName": spec.node_name}


def _internal(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return a spec as Kubernetes' internal type, which errors about immutable fields show."""
    texts = {f"{name[0].upper()}{name[1:]}": spec.get(name) or "" for name in _TEXTS}
    keys = {"PKIXPublicKey": "pkixPublicKey", "ProofOfPossession": "proofOfPossession"}
    proofs = {shown: spec.get(name) for shown, name in {**keys, "StubPKCS10Request": "stubPKCS10Request"}.items()}
    annotations = spec.get("unverifiedUserAnnotations")
    return {
        **texts,
        "MaxExpirationSeconds": spec.get("maxExpirationSeconds"),
        **proofs,
        "UnverifiedUserAnnotations": annotations,
    }


def _validate_uid(uid: str, path: Path) -> list[FieldError]:
    if not uid:
        return [invalid(path, "", "must not be empty")]
    return [too_long(path, _LONGEST_UID)] if name_formats.length(uid) > _LONGEST_UID else []


def _validate_annotations(annotations: Mapping[str, Any]) -> list[FieldError]:
    path = _SPEC.child("unverifiedUserAnnotations")
    errors = [error for key in sorted(annotations) for error in domain_prefixed_key(key.lower(), path)]
    size = sum(name_formats.length(key) + name_formats.length(value) for key, value in annotations.items())
    return [*errors, too_long(path, ANNOTATIONS_SIZE)] if size > ANNOTATIONS_SIZE else errors

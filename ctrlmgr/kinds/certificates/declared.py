"""The declarations of the kinds of `certificates.k8s.io`."""

from __future__ import annotations

from ctrlmgr.engine.managedfields.reset_fields import STATUS, all_but
from ctrlmgr.kinds.certificates import printers
from ctrlmgr.kinds.certificates.certificate_signing_request import CertificateSigningRequestStrategy
from ctrlmgr.kinds.certificates.cluster_trust_bundle import ClusterTrustBundleStrategy
from ctrlmgr.kinds.certificates.pod_certificate_request import PodCertificateRequestStrategy
from ctrlmgr.kinds.kind_declaration import Declaration, same_as

_SPEC = ("spec",)
_ALPHA, _BETA = "certificates.k8s.io/v1alpha1", "certificates.k8s.io/v1beta1"
_BUNDLES = "ClusterTrustBundle"
"""The feature gate of ClusterTrustBundles, and their kind."""

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
    Declaration(
        _BETA,
        _BUNDLES,
        strategy=ClusterTrustBundleStrategy(),
        printer=printers.CLUSTER_TRUST_BUNDLE,
        feature_gate=_BUNDLES,
    ),
    Declaration(
        _ALPHA,
        _BUNDLES,
        printer=printers.CLUSTER_TRUST_BUNDLE,
        feature_gate=_BUNDLES,
        stored_as=same_as(_BETA, _BUNDLES, _ALPHA),
    ),
    Declaration(
        _BETA,
        "PodCertificateRequest",
        strategy=PodCertificateRequestStrategy(),
        printer=printers.POD_CERTIFICATE_REQUEST,
        feature_gate="PodCertificateRequest",
    ),
)

"""The CSR signing controller: the four signers of `kubernetes.io`, each with its certificate authority."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ctrlmgr.api.resource import Resource
from ctrlmgr.controllers.descriptor import ControllerDescriptor
from ctrlmgr.settings import DURATION, TEXT, Setting


@dataclass(frozen=True, kw_only=True)
class Options:
    """The certificate authorities and durations of the signers; if files of an authority change, they are reloaded."""

    cluster_signing_cert_file: Annotated[
        str,
        TEXT,
        Setting(
            "The certificate (PEM) of the authority that signs CertificateSigningRequests. Empty: the server's own "
            "authority, which the server trusts.",
            flag="--cluster-signing-cert-file",
            metavar="FILE",
        ),
    ] = ""
    cluster_signing_key_file: Annotated[
        str,
        TEXT,
        Setting(
            "The private key (PEM) of the authority in cluster_signing_cert_file.",
            flag="--cluster-signing-key-file",
            metavar="FILE",
        ),
    ] = ""
    cluster_signing_duration: Annotated[
        float,
        DURATION,
        Setting(
            "The maximum lifetime of signed certificates; a CertificateSigningRequest may request a shorter lifetime.",
            flag="--cluster-signing-duration",
            metavar="DURATION",
        ),
    ] = 31_536_000.0
    cluster_signing_kubelet_serving_cert_file: Annotated[
        str,
        TEXT,
        Setting(
            "The certificate (PEM) of the authority that signs serving certificates of kubelets. Empty: the "
            "authority in cluster_signing_cert_file.",
            flag="--cluster-signing-kubelet-serving-cert-file",
            metavar="FILE",
        ),
    ] = ""
    cluster_signing_kubelet_serving_key_file: Annotated[
        str,
        TEXT,
        Setting(
            "The private key (PEM) of the authority that signs serving certificates of kubelets. Empty: the key in "
            "cluster_signing_key_file.",
            flag="--cluster-signing-kubelet-serving-key-file",
            metavar="FILE",
        ),
    ] = ""
    cluster_signing_kubelet_client_cert_file: Annotated[
        str,
        TEXT,
        Setting(
            "The certificate (PEM) of the authority that signs client certificates of kubelets. Empty: the "
            "authority in cluster_signing_cert_file.",
            flag="--cluster-signing-kubelet-client-cert-file",
            metavar="FILE",
        ),
    ] = ""
    cluster_signing_kubelet_client_key_file: Annotated[
        str,
        TEXT,
        Setting(
            "The private key (PEM) of the authority that signs client certificates of kubelets. Empty: the key in "
            "cluster_signing_key_file.",
            flag="--cluster-signing-kubelet-client-key-file",
            metavar="FILE",
        ),
    ] = ""
    cluster_signing_kube_apiserver_client_cert_file: Annotated[
        str,
        TEXT,
        Setting(
            "The certificate (PEM) of the authority that signs client certificates for the signer "
            "kubernetes.io/kube-apiserver-client. Empty: the authority in cluster_signing_cert_file.",
            flag="--cluster-signing-kube-apiserver-client-cert-file",
            metavar="FILE",
        ),
    ] = ""
    cluster_signing_kube_apiserver_client_key_file: Annotated[
        str,
        TEXT,
        Setting(
            "The private key (PEM) of the authority that signs client certificates for the signer "
            "kubernetes.io/kube-apiserver-client. Empty: the key in cluster_signing_key_file.",
            flag="--cluster-signing-kube-apiserver-client-key-file",
            metavar="FILE",
        ),
    ] = ""
    cluster_signing_legacy_unknown_cert_file: Annotated[
        str,
        TEXT,
        Setting(
            "The certificate (PEM) of the authority for the signer kubernetes.io/legacy-unknown. Empty: the "
            "authority in cluster_signing_cert_file.",
            flag="--cluster-signing-legacy-unknown-cert-file",
            metavar="FILE",
        ),
    ] = ""
    cluster_signing_legacy_unknown_key_file: Annotated[
        str,
        TEXT,
        Setting(
            "The private key (PEM) of the authority for the signer kubernetes.io/legacy-unknown. Empty: the key in "
            "cluster_signing_key_file.",
            flag="--cluster-signing-legacy-unknown-key-file",
            metavar="FILE",
        ),
    ] = ""


DESCRIPTOR = ControllerDescriptor(
    name="certificatesigningrequest-signing-controller",
    aliases=("csrsigning",),
    account="certificate-controller",
    does="issues certificates for approved requests, with the four signers of `kubernetes.io`",
    watches=(Resource("certificates.k8s.io", "certificatesigningrequests"),),
    builder="ctrlmgr.controllers.certificatesigningrequest_signing.controller:build",
    options=Options,
)
"""The declaration of the controller: its name and the function that builds it."""

"""CertificateSigningRequests with the fields that their controllers read, and the rules for the requests of kubelets.

Source: Kubernetes' `pkg/apis/certificates/helpers.go`, `pkg/controller/certificates/certificate_controller_utils.go`.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Collection, Iterable
from typing import Any, Final

import msgspec
from cryptography import x509
from cryptography.x509.oid import NameOID

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Resource

CSRS: Final = Resource("certificates.k8s.io", "certificatesigningrequests")

CLIENT_SIGNER: Final = "kubernetes.io/kube-apiserver-client"
KUBELET_CLIENT_SIGNER: Final = "kubernetes.io/kube-apiserver-client-kubelet"
KUBELET_SERVING_SIGNER: Final = "kubernetes.io/kubelet-serving"
LEGACY_SIGNER: Final = "kubernetes.io/legacy-unknown"

_BLOCK = re.compile(rb"-----BEGIN CERTIFICATE REQUEST-----.*?-----END CERTIFICATE REQUEST-----", re.DOTALL)
_NODES: Final = ["system:nodes"]
_NODE: Final = "system:node:"
_KEY_USES: Final = frozenset({"digital signature", "key encipherment"})


class Condition(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """A condition of a request: a decision such as its approval."""

    type: str
    status: str = ""
    last_update_time: str | None = None


class Spec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """The spec of a CertificateSigningRequest: the requested certificate, and the requester."""

    request: str = ""
    signer_name: str = ""
    usages: list[str] = []
    expiration_seconds: int | None = None
    username: str = ""
    uid: str = ""
    groups: list[str] = []
    extra: dict[str, list[str]] = {}


class Status(msgspec.Struct, frozen=True, gc=False):
    """The decisions about a request, and its certificate if one was issued."""

    conditions: list[Condition] = []
    certificate: str = ""


class SigningRequest(msgspec.Struct, frozen=True, gc=False):
    """A CertificateSigningRequest (certificates.k8s.io/v1)."""

    spec: Spec = Spec()
    status: Status = Status()

    def is_(self, decided: str) -> bool:
        """Return whether a condition (`Approved`, `Denied`, `Failed`) of a request is true."""
        return any(each.type == decided and each.status in ("", "True") for each in self.status.conditions)


def parse_request(encoded: str) -> x509.CertificateSigningRequest:
    """Parse `spec.request`; raises ValueError if it is not a certificate request in PEM."""
    block = _BLOCK.search(b64decode(encoded))
    if block is None:
        raise ValueError("PEM block type must be CERTIFICATE REQUEST")
    return x509.load_pem_x509_csr(block[0])


def with_status(request: Object, **status: Any) -> Object:
    """Return a copy of `request` with fields of its status replaced."""
    fields = request.to_dict()
    return Object.from_dict({**fields, "status": {**(fields.get("status") or {}), **status}})


def with_condition(request: Object, condition: dict[str, str]) -> Object:
    """Return a copy of `request` with one more condition."""
    conditions = (request.to_dict().get("status") or {}).get("conditions") or []
    return with_status(request, conditions=[*conditions, condition])


def common_name(request: x509.CertificateSigningRequest) -> str:
    """Return the last common name of the subject, "" if the subject has none."""
    names = _values(request, NameOID.COMMON_NAME)
    return names[-1] if names else ""


def kubelet_client_problem(request: x509.CertificateSigningRequest, usages: Collection[str]) -> str:
    """Return the reason why a request is not a kubelet's request for a client certificate.

    The result is empty if the request is a kubelet's request for a client certificate.
    """
    if _values(request, NameOID.ORGANIZATION_NAME) != _NODES:
        return "subject organization is not system:nodes"
    names = alternative_names(request)
    for kind, called in ((x509.DNSName, "DNS"), (x509.RFC822Name, "Email"), (x509.IPAddress, "IP")):
        if any(isinstance(each, kind) for each in names):
            return f"{called} subjectAltNames are not allowed"
    if any(isinstance(each, x509.UniformResourceIdentifier) for each in names):
        return "URI subjectAltNames are not allowed"
    if not common_name(request).startswith(_NODE):
        return "subject common name does not begin with system:node:"
    return _usage_problem(usages, "client auth")


def kubelet_serving_problem(request: x509.CertificateSigningRequest, usages: Collection[str]) -> str:
    """Return the reason why a request is not a kubelet's request for a serving certificate.

    The result is empty if the request is a kubelet's request for a serving certificate.
    """
    if _values(request, NameOID.ORGANIZATION_NAME) != _NODES:
        return "subject organization is not system:nodes"
    names = alternative_names(request)
    if not any(isinstance(each, x509.DNSName | x509.IPAddress) for each in names):
        return "DNS or IP subjectAltName is required"
    if any(isinstance(each, x509.RFC822Name) for each in names):
        return "Email subjectAltNames are not allowed"
    if any(isinstance(each, x509.UniformResourceIdentifier) for each in names):
        return "URI subjectAltNames are not allowed"
    if problem := _usage_problem(usages, "server auth"):
        return problem
    return "" if common_name(request).startswith(_NODE) else "subject common name does not begin with system:node:"


def client_problem(usages: Iterable[str]) -> str:
    """Return the reason why usages are not allowed for a client certificate; empty if they are allowed."""
    usages = list(usages)
    for each in usages:
        if each not in _KEY_USES and each != "client auth":
            return f"invalid usage for client certificate: {each}"
    return "" if "client auth" in usages else "missing required usage for client certificate: client auth"


def alternative_names(request: x509.CertificateSigningRequest) -> list[x509.GeneralName]:
    """Return the subject alternative names of a request."""
    try:
        return list(request.extensions.get_extension_for_class(x509.SubjectAlternativeName).value)
    except x509.ExtensionNotFound:
        return []


def _usage_problem(usages: Collection[str], desired: str) -> str:
    required = {*_KEY_USES, desired}
    if set(usages) in (required, {"digital signature", desired}):
        return ""
    return f"usages did not match [{' '.join(sorted(required))}]"


def _values(request: x509.CertificateSigningRequest, oid: x509.ObjectIdentifier) -> list[str]:
    return [str(each.value) for each in request.subject.get_attributes_for_oid(oid)]

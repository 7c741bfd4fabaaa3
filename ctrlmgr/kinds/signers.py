"""Validates the names of certificate signers and of ClusterTrustBundles.

Source: Kubernetes `pkg/apis/core/validation/names.go`.
"""

from __future__ import annotations

from ctrlmgr.api.field import FieldError, Path, invalid, required, too_long
from ctrlmgr.engine.validation import name_formats

_LONGEST_DOMAIN = 253
_LONGEST = 253 + 1 + 253 + 1 + 63
"""The maximum size of a signer name in bytes. A signer name is a domain, a slash, and a resource name with its
namespace.
"""


def is_kubernetes_signer(signer: str) -> bool:
    """Return whether a signer name is reserved for Kubernetes' own signers."""
    domain = signer.partition("/")[0]
    return domain == "kubernetes.io" or domain.endswith(".kubernetes.io")


def validate_signer_name(signer: str, path: Path) -> list[FieldError]:
    """Validate a signer name of the form `example.com/name` (`ValidateSignerName`)."""
    if not signer:
        return [required(path)]
    domain, slash, name = signer.partition("/")
    if not slash or "/" in name:
        words = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        return [invalid(path, signer, words)]
    errors = [too_long(path, _LONGEST_DOMAIN)] if name_formats.length(domain) > _LONGEST_DOMAIN else []
    labels = domain.split(".")
    errors += _first_problem(labels, domain, name_formats.dns1123_label, path)
    if len(labels) < 2:
        errors.append(invalid(path, domain, "should be a domain with at least two segments separated by dots"))
    errors += _first_problem(name.split("."), name, name_formats.dns1123_subdomain, path)
    if name_formats.length(signer) > _LONGEST:
        errors.append(too_long(path, _LONGEST))
    return errors


def _first_problem(parts: list[str], whole: str, check: name_formats.Check, path: Path) -> list[FieldError]:
    for part in parts:
        if problems := check(part):
            return [invalid(path, whole, f'validating label "{part}": {each}') for each in problems]
    return []


def validate_trust_bundle_name(name: str, path: Path) -> list[FieldError]:
    """Validate the name of a ClusterTrustBundle.

    Its form is `example.com:signer:name`, or a name without a signer.
    """
    signer, colon, own = name.rpartition(":")
    if colon and not signer:
        problems = ['ClusterTrustBundle without signer name must not have ":" in its name']
    elif "/" in signer:
        named, prefix = signer.replace(":", "/"), signer.replace("/", ":")
        problems = [f"ClusterTrustBundle for signerName {named} must be named with prefix {prefix}:"]
    else:
        problems = name_formats.dns1123_subdomain(own)
    return [invalid(path, name, f"not a valid clustertrustbundlename: {each}") for each in problems]

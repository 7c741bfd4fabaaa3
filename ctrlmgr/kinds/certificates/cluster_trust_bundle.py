"""The strategy of ClusterTrustBundles, which contain the root certificates of a signer.

Kubernetes serves the kind only if one of its versions is enabled and the feature gate ClusterTrustBundle is on.

Source: Kubernetes `pkg/registry/certificates/clustertrustbundle/strategy.go`, `pkg/apis/certificates/validation` and,
for the name, `pkg/apis/core/validation/names.go`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from ctrlmgr.api.field import FieldError, Path, invalid, too_long
from ctrlmgr.api.object import Object
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.strategy import Context
from ctrlmgr.engine.validation import name_formats
from ctrlmgr.engine.validation.certificate_requests import Block, blocks
from ctrlmgr.kinds.common_rules import immutable
from ctrlmgr.kinds.signers import validate_signer_name
from ctrlmgr.kinds.simple_strategies import GuardedStrategy

MOST_BYTES: Final = 1024 * 1024
"""The maximum size of a trust bundle (`MaxTrustBundleSize`)."""
_METADATA, _SPEC = Path("metadata"), Path("spec")
_BUNDLE, _SIGNER = _SPEC.child("trustBundle"), _SPEC.child("signerName")
_OMITTED: Final = "<value omitted>"


class _Spec(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    signer_name: str = ""


class _Bundle(msgspec.Struct, frozen=True, gc=False):
    spec: _Spec = _Spec()


class ClusterTrustBundleStrategy(GuardedStrategy):
    """certificates.k8s.io ClusterTrustBundle; field selectors can select the bundles of a signer."""

    name_check = staticmethod(name_formats.any_name)  # The name depends on the signer, so `validate` checks it.
    fields = ("spec.signerName",)

    def validate(self, ctx: Context, obj: Unstructured) -> list[FieldError]:
        """Validate the name, the signer and the certificates; certificates that do not change are valid."""
        signer, bundle = (_field(obj, name) for name in ("signerName", "trustBundle"))
        errors = _validate_names(obj["metadata"], signer)
        errors += validate_signer_name(signer, _SIGNER) if signer else []
        if ctx.old is not None and bundle == _field(ctx.old, "trustBundle"):
            return errors
        return errors + validate_trust_bundle(bundle, _BUNDLE)

    def validate_update(self, ctx: Context, new: Unstructured, old: Unstructured) -> list[FieldError]:
        """Validate that the signer is unchanged."""
        return immutable(_field(new, "signerName"), _field(old, "signerName"), _SIGNER)

    def selectable(self, obj: Object) -> Mapping[str, str]:
        """Return the name of the signer of a bundle."""
        return {"spec.signerName": obj.view(_Bundle).spec.signer_name}


def _field(bundle: Unstructured, name: str) -> str:
    return str((bundle.get("spec") or {}).get(name) or "")


def _validate_names(metadata: Mapping[str, str], signer: str) -> list[FieldError]:
    errors = []
    for field, is_prefix in (("generateName", True), ("name", False)):
        if name := metadata.get(field):
            problems = _name_problems(name, signer, is_prefix=is_prefix)
            errors += [invalid(_METADATA.child(field), name, each) for each in problems]
    return errors


def _name_problems(name: str, signer: str, *, is_prefix: bool) -> list[str]:
    """Return the errors of a name, which begins with the signer's name if there is a signer."""
    if not signer:
        if ":" in name:
            return ['ClusterTrustBundle without signer name must not have ":" in its name']
        return name_formats.subdomain_name(name, is_prefix)
    prefix = f"{signer.replace('/', ':')}:"
    if not name.startswith(prefix):
        return [f"ClusterTrustBundle for signerName {signer} must be named with prefix {prefix}"]
    return name_formats.subdomain_name(name.removeprefix(prefix), is_prefix)


def validate_trust_bundle(text: str, path: Path) -> list[FieldError]:
    """Validate PEM blocks: each is the certificate of a certificate authority, and none occurs twice."""
    data = text.encode()
    if len(data) > MOST_BYTES:
        return [too_long(path, MOST_BYTES)]
    indexes: dict[bytes, list[int]] = {}
    errors = []
    for at, block in enumerate(blocks(data)):
        if words := _block_problem(block):
            errors.append(invalid(path, _OMITTED, f"entry {at} {words}"))
        indexes.setdefault(block.der, []).append(at)
    if errors:
        return errors
    if not indexes:
        errors.append(invalid(path, _OMITTED, "at least one trust anchor must be provided"))
    for each in indexes.values():
        if len(each) > 1:
            listed = " ".join(map(str, each))
            errors.append(invalid(path, _OMITTED, f"duplicate trust anchor (indices [{listed}])"))
    return errors


def _block_problem(block: Block) -> str:
    # Imported here because these modules load slowly and few clients write certificates.
    from cryptography.x509 import BasicConstraints, ExtensionNotFound, load_der_x509_certificate

    if block.type != b"CERTIFICATE":
        return f"has bad block type: {block.type.decode(errors='replace')}"
    if block.has_headers:
        return "has PEM block headers"
    try:
        extensions = load_der_x509_certificate(block.der).extensions
    except ValueError:
        return "does not parse as X.509"
    try:
        is_authority = extensions.get_extension_for_class(BasicConstraints).value.ca
    except ExtensionNotFound:
        is_authority = False
    return "" if is_authority else "does not have the CA bit set"

"""The strategy of IPAddresses; an IPAddress is the claim on an IP address (networking.k8s.io/v1, KEP-1880).

Guarantees: the name of an IPAddress is the address in canonical form, so there is at most one claim on each address.
The owner of a claim cannot change.

Source: Kubernetes `pkg/apis/networking/validation` and `pkg/registry/networking/ipaddress`.
"""

from __future__ import annotations

from ctrlmgr.api.field import ROOT, FieldError, Path, invalid, required
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.strategy import Context, Strategy
from ctrlmgr.engine.validation.ip_validation import validate_ip
from ctrlmgr.engine.validation.name_formats import dns1123_subdomain, path_segment_name
from ctrlmgr.engine.validation.object_meta import IMMUTABLE
from ctrlmgr.golang.go_text import quote
from ctrlmgr.kinds.allocators.allocation_claims import ParentReference

_PARENT = Path("spec.parentRef")


def address_name(name: str, is_prefix: bool = False) -> list[str]:
    """Validate the name of an IPAddress; a generated name is refused (`ValidateIPAddressName`)."""
    shown = f"Invalid value: {quote(name)}: "
    return [error.body.removeprefix(shown) for error in validate_ip(ROOT, name)]


def validate_parent(parent: ParentReference) -> list[FieldError]:
    """Validate the reference to the owner of an IPAddress.

    The group of the owner may be empty, because Services belong to the core group, whose name is empty.
    """
    errors: list[FieldError] = []
    if parent.group:
        errors += _invalid("group", parent.group, dns1123_subdomain(parent.group))
    for field, value in (("resource", parent.resource), ("name", parent.name)):
        errors += _invalid(field, value, path_segment_name(value)) if value else [required(_PARENT.child(field))]
    return errors + _invalid("namespace", parent.namespace, path_segment_name(parent.namespace))


def _invalid(field: str, value: str, problems: list[str]) -> list[FieldError]:
    return [invalid(_PARENT.child(field), value, problem) for problem in problems] if problems else []


class IPAddressStrategy(Strategy):
    """The strategy of IPAddresses, which record the owner of an address: a Service or another object."""

    name_check = staticmethod(address_name)

    def validate(self, ctx: Context, obj: Unstructured) -> list[FieldError]:
        """Validate the parent reference of an IPAddress."""
        if (parent := _parent(obj)) is None:
            return [required(_PARENT)]
        return validate_parent(parent)

    def validate_update(self, ctx: Context, new: Unstructured, old: Unstructured) -> list[FieldError]:
        """Validate that the parent reference of an IPAddress is unchanged."""
        parent = _parent(new)
        return [] if parent == _parent(old) else [invalid(_PARENT, parent and _as_go(parent), IMMUTABLE)]


def _parent(obj: Unstructured) -> ParentReference | None:
    parent = (obj.get("spec") or {}).get("parentRef")
    if parent is None:
        return None
    return ParentReference(*(parent.get(field) or "" for field in ParentReference.__struct_fields__))


def _as_go(parent: ParentReference) -> dict[str, str]:
    """Format a reference in Go's print format, with the Go name and the value of every field."""
    return {field.capitalize(): getattr(parent, field) for field in ParentReference.__struct_fields__}

"""The strategy of ServiceCIDRs, the ranges from which Services get their addresses (networking.k8s.io/v1, KEP-1880).

Guarantees: a ServiceCIDR has one range, or one range of each IP family. An update of a ServiceCIDR can add a second
range, but cannot change other fields of the spec.

Source: Kubernetes `pkg/apis/networking/validation` and `pkg/registry/networking/servicecidr`.
"""

from __future__ import annotations

from ctrlmgr.api.field import FieldError, Path, invalid, required
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.managedfields.reset_fields import METADATA
from ctrlmgr.engine.strategy import Context, Strategy
from ctrlmgr.engine.validation.ip_validation import parse_cidr, validate_cidr
from ctrlmgr.engine.validation.object_meta import IMMUTABLE

_CIDRS = Path("spec.cidrs")
_ONE_OF_EACH = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"


class ServiceCIDRStrategy(Strategy):
    """The strategy of ServiceCIDRs; an instance contains the ranges from which addresses are allocated."""

    revalidates = 0
    status_keeps = METADATA

    def validate(self, ctx: Context, obj: Unstructured) -> list[FieldError]:
        """Validate a new ServiceCIDR; `validate_update` validates an updated ServiceCIDR."""
        return _validate(_cidrs(obj)) if ctx.old is None else []

    def validate_update(self, ctx: Context, new: Unstructured, old: Unstructured) -> list[FieldError]:
        """Validate that a ServiceCIDR's ranges are unchanged, or only one is added (`ValidateServiceCIDRUpdate`)."""
        if ctx.subresource:
            return []
        before, after = _cidrs(old), _cidrs(new)
        is_added = (len(before), len(after)) == (1, 2)
        if len(before) != len(after) and not is_added:
            return [invalid(_CIDRS, after or None, IMMUTABLE)]
        pairs = enumerate(zip(before, after, strict=False))
        errors = [invalid(_CIDRS.at(index), now, IMMUTABLE) for index, (was, now) in pairs if was != now]
        return errors + _validate(after) if is_added else errors


def _cidrs(obj: Unstructured) -> list[str]:
    return (obj.get("spec") or {}).get("cidrs") or []


def _validate(cidrs: list[str]) -> list[FieldError]:
    """Validate the number of ranges of a ServiceCIDR, each range, and that two ranges have different IP families."""
    if not cidrs:
        return [required(_CIDRS, "at least one CIDR required")]
    if len(cidrs) > 2:
        return [invalid(_CIDRS, {"CIDRs": cidrs}, "may only hold up to 2 values")]
    errors = [error for index, cidr in enumerate(cidrs) for error in validate_cidr(_CIDRS.at(index), cidr)]
    networks = [parse_cidr(cidr) for cidr in cidrs]
    families = [network.address.version for network in networks if network is not None]
    if len(families) == 2 and len(set(families)) == 1:
        errors.append(invalid(_CIDRS, cidrs, _ONE_OF_EACH))
    return errors

"""ServiceCIDR: a range that Services get their addresses from (networking.k8s.io/v1, KEP-1880).

Guarantees: it holds one range, or one of each IP family; a second one can be added, nothing else can change. Rules
come from `pkg/apis/networking/validation` and `pkg/registry/networking/servicecidr`.
"""

from __future__ import annotations

from ctrlmgr.api.field import FieldError, Path, invalid, required
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.managedfields.reset_fields import METADATA
from ctrlmgr.engine.strategy import Context, Strategy
from ctrlmgr.engine.validation.addresses import parse_cidr, validate_cidr
from ctrlmgr.engine.validation.metadata import IMMUTABLE

_CIDRS = Path("spec.cidrs")
_ONE_OF_EACH = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"


class ServiceCIDRStrategy(Strategy):
    """ServiceCIDR: what there is to allocate from."""

    status_keeps = METADATA

    def validate(self, ctx: Context, obj: Unstructured) -> list[FieldError]:
        """Check how many ranges there are, of which families, and each by itself."""
        cidrs = [] if ctx.subresource else _cidrs(obj)
        if not cidrs:
            return [] if ctx.subresource else [required(_CIDRS, "at least one CIDR required")]
        if len(cidrs) > 2:
            return [invalid(_CIDRS, {"CIDRs": cidrs}, "may only hold up to 2 values")]
        if len(cidrs) == 2 and not _is_dual_stack(cidrs):
            return [invalid(_CIDRS, {"CIDRs": cidrs}, _ONE_OF_EACH)]
        return [error for index, cidr in enumerate(cidrs) for error in validate_cidr(_CIDRS.at(index), cidr)]

    def validate_update(self, ctx: Context, new: Unstructured, old: Unstructured) -> list[FieldError]:
        """Check that ranges stay what they are (`ValidateServiceCIDRUpdate`)."""
        if ctx.subresource:
            return []
        before, after = _cidrs(old), _cidrs(new)
        if len(before) == len(after) or (len(before), len(after)) == (1, 2):
            pairs = enumerate(zip(before, after, strict=False))
            return [invalid(_CIDRS.at(index), now, IMMUTABLE) for index, (was, now) in pairs if was != now]
        return [invalid(_CIDRS, after or None, IMMUTABLE)]


def _cidrs(obj: Unstructured) -> list[str]:
    return (obj.get("spec") or {}).get("cidrs") or []


def _is_dual_stack(cidrs: list[str]) -> bool:
    networks = [parse_cidr(cidr) for cidr in cidrs]
    return len({network.address.version for network in networks if network is not None}) == 2

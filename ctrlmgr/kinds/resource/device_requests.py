"""Validates the specs of ResourceClaims: device requests, constraints between requests, and driver configurations.

Source: Kubernetes `pkg/apis/resource/validation/validation.go`.
"""

from __future__ import annotations

from collections.abc import Mapping

from ctrlmgr.api.field import FieldError, Path, invalid, not_supported, required
from ctrlmgr.engine.features.gates import is_on
from ctrlmgr.engine.validation import name_formats
from ctrlmgr.kinds.common_rules import each_problem
from ctrlmgr.kinds.resource.defaults import ALL, EXACT_COUNT
from ctrlmgr.kinds.resource.selectors import validate_selectors
from ctrlmgr.kinds.resource.shared_parts import (
    MAX_CONFIGURATIONS,
    MAX_REQUESTS,
    Fields,
    fully_qualified_name,
    label,
    validate_configuration,
    validate_list,
    validate_set,
    validate_toleration,
)

_MAX_CONSTRAINTS = 32
_MAX_ALTERNATIVES = 8
_ONE_KIND = "exactly one of `exactly` or `firstAvailable` is required"
_UNKNOWN_REQUEST = (
    "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
)
_ONE_ATTRIBUTE = 'exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set'

Requests = Mapping[str, frozenset[str]]
"""The names of the requests of a ResourceClaim, each with the names of the request's alternatives."""


def name_of(fields: Fields) -> str:
    """Return the name of a request or device; empty if it has no name."""
    name: str = fields.get("name") or ""
    return name


def requests_of(spec: Fields) -> Requests:
    """Return the names of the requests of a ResourceClaim."""
    requests = (spec.get("devices") or {}).get("requests") or ()
    return {name_of(each): frozenset(map(name_of, each.get("firstAvailable") or ())) for each in requests}


def validate_claim_spec(spec: Fields, path: Path) -> list[FieldError]:
    """Validate the spec of a new ResourceClaim, or of a ResourceClaimTemplate."""
    devices, below, known = spec.get("devices") or {}, path.child("devices"), requests_of(spec)
    errors = validate_set(
        devices.get("requests") or (), MAX_REQUESTS, _validate_request, below.child("requests"), name_of
    )
    errors += validate_list(
        devices.get("constraints") or (),
        _MAX_CONSTRAINTS,
        lambda each, at: _validate_constraint(each, known, at),
        below.child("constraints"),
    )
    return errors + validate_list(
        devices.get("config") or (),
        MAX_CONFIGURATIONS,
        lambda each, at: validate_request_configuration(each, known, at),
        below.child("config"),
    )


def _validate_request(request: Fields, path: Path) -> list[FieldError]:
    errors = label(name_of(request), path.child("name"))
    exactly, alternatives = request.get("exactly"), request.get("firstAvailable") or ()
    if exactly is not None and alternatives:
        return [*errors, invalid(path, None, f"{_ONE_KIND}, but multiple fields are set")]
    if exactly is not None:
        return errors + _validate_wanted(exactly, path.child("exactly"))
    if not alternatives:
        return [*errors, required(path, _ONE_KIND)]
    below = path.child("firstAvailable")
    return errors + validate_set(alternatives, _MAX_ALTERNATIVES, _validate_alternative, below, name_of)


def _validate_alternative(alternative: Fields, path: Path) -> list[FieldError]:
    return label(name_of(alternative), path.child("name")) + _validate_wanted(alternative, path)


def _validate_wanted(wanted: Fields, path: Path) -> list[FieldError]:
    """Validate the class, the number and the tolerations of requested devices."""
    device_class, below = wanted.get("deviceClassName") or "", path.child("deviceClassName")
    errors = each_problem(name_formats.dns1123_subdomain, device_class, below) if device_class else [required(below)]
    errors += validate_selectors(wanted.get("selectors") or (), path.child("selectors"))
    errors += _validate_count(wanted.get("allocationMode") or "", wanted.get("count") or 0, path)
    return errors + validate_list(wanted.get("tolerations") or (), None, validate_toleration, path.child("tolerations"))


def _validate_count(mode: str, count: int, path: Path) -> list[FieldError]:
    below = path.child("count")
    if mode == ALL:
        return [invalid(below, count, f"must not be specified when allocationMode is '{ALL}'")] if count else []
    if mode == EXACT_COUNT:
        return [invalid(below, count, "must be greater than zero")] if count <= 0 else []
    return [not_supported(path.child("allocationMode"), mode, (ALL, EXACT_COUNT))]


def _validate_constraint(constraint: Fields, known: Requests, path: Path) -> list[FieldError]:
    errors = validate_request_names(constraint, known, path)
    for field in ("matchAttribute", "distinctAttribute"):
        if (attribute := constraint.get(field)) is not None:
            return errors + fully_qualified_name(attribute, path.child(field))
    if is_on("DRAConsumableCapacity"):
        return [*errors, required(path, _ONE_ATTRIBUTE)]
    return [*errors, required(path.child("matchAttribute"))]


def validate_request_configuration(configuration: Fields, known: Requests, path: Path) -> list[FieldError]:
    """Validate a driver configuration for the devices of some requests."""
    errors = validate_request_names(configuration, known, path)
    return errors + validate_configuration(configuration, path, stored=False)


def validate_request_names(owner: Fields, known: Requests, path: Path) -> list[FieldError]:
    """Validate the request names to which a constraint or configuration refers."""
    return validate_set(
        owner.get("requests") or (),
        MAX_REQUESTS,
        lambda name, at: request_name(name, known, at),
        path.child("requests"),
    )


def request_name(name: str, known: Requests, path: Path) -> list[FieldError]:
    """Validate the name of a request, or of one of its alternatives: `request/alternative`."""
    request, *rest = name.split("/")
    if len(rest) > 1:
        return [invalid(path, name, _UNKNOWN_REQUEST)]
    errors = [error for each in (request, *rest) for error in label(each, path)]
    is_known = request in known and (not rest or rest[0] in known[request])
    return errors if is_known else [*errors, invalid(path, name, _UNKNOWN_REQUEST)]

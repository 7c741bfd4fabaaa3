"""Validates the conditions and the certificate in the status of a certificate signing request.

Guarantees: an approval or denial is final. Only writes to `/approval` approve or deny a certificate signing request. A
request is never both approved and denied. Only writes to `/status` set the certificate, and a set certificate never
changes. If the stored status already violates a rule, an update may also violate the rule.

Source: Kubernetes' `pkg/registry/certificates/certificates/strategy.go` and
`pkg/apis/certificates/validation/validation.go`.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from ctrlmgr.api.field import FieldError, Path, duplicate, forbidden, invalid, not_supported, required
from ctrlmgr.engine.validation.certificate_requests import certificate_problem

APPROVED = "Approved"
DENIED = "Denied"
_DECISIONS = (APPROVED, DENIED)
_FINAL = (*_DECISIONS, "Failed")
"""The types of conditions whose status must be True and which cannot be removed."""

_PATH = Path("status")
_CONDITIONS = _PATH.child("conditions")
_CERTIFICATE = _PATH.child("certificate")
_ORDER = ("type", "status", "reason", "message", "lastUpdateTime", "lastTransitionTime")

Condition: TypeAlias = Mapping[str, Any]
Status: TypeAlias = Mapping[str, Any]


def keep_decisions(new: Sequence[Condition], old: Sequence[Condition]) -> list[Condition]:
    """Return the conditions that an update stores.

    If the update neither adds nor removes approvals and denials, the old approvals and denials are kept.
    """
    kept = list(new)
    for type_ in _DECISIONS:
        before = _of_type(old, type_)
        places = [at for at, each in enumerate(new) if each.get("type") == type_]
        if len(places) == len(before):
            for at, condition in zip(places, before, strict=True):
                kept[at] = condition
    return kept


def stamp(new: Sequence[Condition], old: Sequence[Condition], now: str) -> list[Condition]:
    """Return conditions in which missing timestamps are set; an unchanged condition keeps its transition time."""
    return [_stamped(each, old, now) for each in new]


def _stamped(condition: Condition, old: Sequence[Condition], now: str) -> Condition:
    if condition.get("lastUpdateTime") and condition.get("lastTransitionTime"):
        return condition
    same = (
        each["lastTransitionTime"]
        for each in old
        if each.get("type") == condition.get("type")
        and each.get("status") == condition.get("status")
        and each.get("lastTransitionTime")
    )
    times = {
        "lastUpdateTime": condition.get("lastUpdateTime") or now,
        "lastTransitionTime": condition.get("lastTransitionTime") or next(same, now),
    }
    stamped = {**condition, **times}
    return {name: stamped[name] for name in _ORDER if name in stamped}


def validate_status(new: Status, old: Status, subresource: str) -> list[FieldError]:
    """Validate the status after an update."""
    after, before = new.get("conditions") or (), old.get("conditions") or ()
    errors = _validate_conditions(after, before)
    errors += _validate_certificate(new, old)
    errors += [_forbidden("remove", type_) for type_ in _FINAL if _is_fewer(after, before, type_)]
    if subresource != "approval":  # for writes to other subresources, `keep_decisions` has restored the decisions
        errors += [_forbidden("add", type_) for type_ in _DECISIONS if _is_fewer(before, after, type_)]
    return errors + _validate_change(new, old, subresource)


def _validate_conditions(conditions: Sequence[Condition], old: Sequence[Condition]) -> list[FieldError]:
    errors: list[FieldError] = []
    types = [each.get("type") or "" for each in old]
    may_repeat, may_be_both = len(set(types)) < len(types), set(_DECISIONS) <= set(types)
    seen: set[str] = set()
    for at, each in enumerate(conditions):
        path, type_ = _CONDITIONS.at(at), each.get("type") or ""
        if not type_ and "" not in types:
            errors.append(required(path.child("type")))
        errors += _validate_value(type_, each.get("status") or "", path.child("status"))
        if type_ in _DECISIONS and seen.intersection(_DECISIONS) - {type_} and not may_be_both:
            errors.append(invalid(_CONDITIONS, type_, "Approved and Denied conditions are mutually exclusive"))
        if type_ in seen and not may_repeat:
            errors.append(duplicate(path.child("type"), type_))
        seen.add(type_)
    return errors


def _validate_value(type_: str, value: str, path: Path) -> list[FieldError]:
    allowed = ("True",) if type_ in _FINAL else ("False", "True", "Unknown")
    if not value:
        return [required(path)]
    return [] if value in allowed else [not_supported(path, value, allowed)]


def _validate_certificate(new: Status, old: Status) -> list[FieldError]:
    certificate, before = new.get("certificate") or "", old.get("certificate") or ""
    if certificate == before or _problem_of(before):
        return []
    words = _problem_of(certificate)
    return [invalid(_CERTIFICATE, "<certificate data>", words)] if words else []


def _problem_of(certificate: str) -> str:
    return certificate_problem(b64decode(certificate)) if certificate else ""


def _validate_change(new: Status, old: Status, subresource: str) -> list[FieldError]:
    before = old.get("certificate") or ""
    if (new.get("certificate") or "") == before:
        return []
    if subresource != "status":
        return [forbidden(_CERTIFICATE, "updates may not set certificate content")]
    return [forbidden(_CERTIFICATE, "updates may not modify existing certificate content")] if before else []


def _forbidden(what: str, type_: str) -> FieldError:
    return forbidden(_CONDITIONS, f'updates may not {what} a condition of type "{type_}"')


def _is_fewer(conditions: Sequence[Condition], others: Sequence[Condition], type_: str) -> bool:
    return len(_of_type(conditions, type_)) < len(_of_type(others, type_))


def _of_type(conditions: Sequence[Condition], type_: str) -> list[Condition]:
    return [each for each in conditions if each.get("type") == type_]

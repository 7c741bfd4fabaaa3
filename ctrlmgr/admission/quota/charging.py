"""Deciding on a write: which quotas of its namespace it is charged to, and whether they bear it.

Guarantees: pure. What is charged is what the write uses more than what was there before; a write that uses no more is
charged nothing and refused nothing.

Rules come from apiserver's `pkg/admission/plugin/resourcequota/controller.go` (`CheckRequest`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from ctrlmgr.admission.quota.amounts import (
    Amounts,
    added,
    exceeding,
    masked,
    printed,
    subtracted,
    without_zeros,
)
from ctrlmgr.admission.quota.evaluator import Evaluator, Fields, Requirement
from ctrlmgr.api.object import Object
from ctrlmgr.api.quantity import parse
from ctrlmgr.api.resource import Resource
from ctrlmgr.engine.attributes import Attributes, Verb


class _Expression(msgspec.Struct, rename="camel"):
    scope_name: str = ""
    operator: str = ""
    values: list[str] | None = None


class _Selector(msgspec.Struct, rename="camel"):
    match_expressions: list[_Expression] | None = None


class _Spec(msgspec.Struct, rename="camel"):
    hard: dict[str, str] | None = None
    scopes: list[str] | None = None
    scope_selector: _Selector | None = None


class _Status(msgspec.Struct):
    hard: dict[str, str] | None = None
    used: dict[str, str] | None = None


class _Quota(msgspec.Struct):
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)


class Quota:
    """One ResourceQuota: `hard` and `used` are those of its status, by which writes are judged."""

    def __init__(self, obj: Object) -> None:
        """Read `obj`."""
        view = obj.view(_Quota)
        self.object = obj
        self.name = obj.name
        self.wanted: Amounts = view.spec.hard or {}
        self.hard: Amounts = view.status.hard or {}
        self.used: Amounts = view.status.used or {}
        self.is_counted = view.status.hard is not None and view.status.used is not None
        selector = view.spec.scope_selector
        listed = [Requirement(scope, "Exists") for scope in view.spec.scopes or ()]
        expressions = (selector.match_expressions or ()) if selector is not None else ()
        self.requirements = [
            *listed,
            *(Requirement(each.scope_name, each.operator, each.values or ()) for each in expressions),
        ]
        self._limited: dict[Evaluator, Sequence[str]] = {}

    def limited(self, evaluator: Evaluator) -> Sequence[str]:
        """Return the names, in order, of what is limited that objects of a kind use."""
        names = self._limited.get(evaluator)
        if names is None:
            names = self._limited[evaluator] = sorted(evaluator.names(self.hard))
        return names

    def has_in_scope(self, evaluator: Evaluator, fields: Fields) -> bool:
        """Whether an object is in all of the quota's scopes."""
        return all(evaluator.in_scope(each, fields) for each in self.requirements)

    def matches(self, evaluator: Evaluator, fields: Fields) -> bool:
        """Whether an object uses what the quota limits."""
        return bool(self.limited(evaluator)) and self.has_in_scope(evaluator, fields)

    def with_status(self, hard: Amounts, used: Amounts) -> Object:
        """Return the quota, at its revision, with another status."""
        status = {"hard": dict(sorted(hard.items())), "used": dict(sorted(used.items()))}
        return self.object.with_field("status", status)

    def at(self, obj: Object) -> Quota:
        """Return the same quota, read from an object that says the same."""
        return self._again(obj, self.used)

    def charged(self, used: Amounts) -> Quota:
        """Return the quota with more used."""
        return self._again(self.with_status(self.hard, used), used)

    def _again(self, obj: Object, used: Amounts) -> Quota:
        again = object.__new__(Quota)
        again.__dict__ = {**self.__dict__, "object": obj, "used": used}
        return again


class Limited(NamedTuple):
    """What may only be used where a quota says how much (LimitedResource of the plugin's configuration)."""

    resource: Resource
    contains: Sequence[str] = ()
    """Parts of the names of resources that are limited."""
    scopes: Sequence[Requirement] = ()


def charges(
    attributes: Attributes, evaluator: Evaluator, quotas: Sequence[Quota], limited: Sequence[Limited] = ()
) -> list[Quota]:
    """Return those of a namespace's quotas that a write is charged to, charged; raises `Forbidden` if it does not fit.

    The first that it does not fit refuses it.
    """
    fields = attributes.fields
    concerned = [quota for quota in quotas if quota.matches(evaluator, fields)]
    for quota in concerned:
        _check(attributes, evaluator, quota)
    usage = evaluator.usage(fields, attributes.now)
    if negative := sorted(name for name, amount in usage.items() if parse(amount) < 0):
        raise attributes.forbidden(f"quota usage is negative for resource(s): {','.join(negative)}")
    more = _more(attributes, evaluator, concerned, usage)
    if not any(more.values()):
        return []
    _check_limited(attributes, evaluator, quotas, concerned, usage, limited)
    charged = (_charged(attributes, quota, more[quota.name]) for quota in concerned if more[quota.name])
    return [each for each in charged if each is not None]


def _check(attributes: Attributes, evaluator: Evaluator, quota: Quota) -> None:
    """Refuse what does not say how much it uses, and what cannot be judged because nothing has been counted yet."""
    names = quota.limited(evaluator)
    if problem := evaluator.problem(names, attributes.fields):
        raise attributes.forbidden(f"failed quota: {quota.name}: {problem}")
    if any(name not in quota.used for name in names):
        raise attributes.forbidden(f"status unknown for quota: {quota.name}, resources: {','.join(names)}")


def _more(
    attributes: Attributes, evaluator: Evaluator, concerned: Sequence[Quota], usage: Amounts
) -> Mapping[str, Amounts]:
    """Return by quota what the write uses more than before; under no name if no quota is concerned."""
    old = attributes.old
    before = {} if old is None else evaluator.usage(old, attributes.now)
    if attributes.operation is Verb.CREATE or old is None:
        return {quota.name: without_zeros(usage) for quota in concerned} or {"": without_zeros(usage)}
    grown = without_zeros(subtracted(usage, before))
    if not concerned:
        return {"": grown}
    return {
        quota.name: grown if quota.matches(evaluator, old) else without_zeros(usage)  # it has come into the scope
        for quota in concerned
    }


def _check_limited(
    attributes: Attributes,
    evaluator: Evaluator,
    quotas: Sequence[Quota],
    concerned: Sequence[Quota],
    usage: Amounts,
    limited: Sequence[Limited],
) -> None:
    """Refuse the use of what is limited by configuration where no quota covers it."""
    if not limited:
        return
    covered = {name for quota in concerned for name in quota.limited(evaluator)}
    needed = {
        name
        for each in limited
        if each.resource == attributes.resource
        for name, amount in usage.items()
        if parse(amount) > 0 and any(part in name for part in each.contains)
    }
    if needed - covered:
        raise attributes.forbidden(f"insufficient quota to consume: {','.join(sorted(needed - covered))}")
    if not evaluator.knows_scopes():
        return
    fields = attributes.fields
    asked = [scope for each in limited for scope in each.scopes if evaluator.in_scope(scope, fields)]
    found = {each.scope for quota in quotas for each in quota.requirements if evaluator.in_scope(each, fields)}
    if uncovered := [str(each) for each in asked if each.scope not in found]:
        raise attributes.forbidden(f"insufficient quota to match these scopes: [{' '.join(uncovered)}]")


def _charged(attributes: Attributes, quota: Quota, more: Amounts) -> Quota | None:
    """Return a quota with what a write uses more; None if that is nothing of what it limits."""
    requested = masked(more, quota.hard)
    sums = added(masked(quota.used, requested), requested)
    if not sums:
        return None
    if attributes.subresource != "status":
        over = exceeding(sums, quota.hard)
        if over:
            said = ((masked(each, over)) for each in (requested, quota.used, quota.hard))
            asked, so_far, limit = (printed(each) for each in said)
            raise attributes.forbidden(
                f"exceeded quota: {quota.name}, requested: {asked}, used: {so_far}, limited: {limit}"
            )
    return quota.charged({**quota.used, **sums})


def configured(value: Mapping[str, Any]) -> Limited:
    """Read one `limitedResources` entry of the plugin's configuration."""
    scopes = [
        Requirement(each.get("scopeName") or "", each.get("operator") or "", each.get("values") or ())
        for each in value.get("matchScopes") or ()
    ]
    resource = Resource(value.get("apiGroup") or "", value.get("resource") or "")
    return Limited(resource, value.get("matchContains") or (), scopes)

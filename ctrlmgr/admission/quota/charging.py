"""Decides to which quotas of its namespace a write is charged, and whether the write fits these quotas.

Guarantees: the functions are pure. A write is charged for the amount by which it increases the usage. A write that does
not increase usage is neither charged nor refused.

Rules come from apiserver's `pkg/admission/plugin/resourcequota/controller.go` (`CheckRequest`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import msgspec

from ctrlmgr.admission.quota.evaluator import Evaluator, Fields, Requirement
from ctrlmgr.admission.quota.quota_amounts import Amounts, masked, printed, subtracted
from ctrlmgr.api.object import Object
from ctrlmgr.api.quantity import Quantity, parse
from ctrlmgr.api.resource import Resource
from ctrlmgr.engine.admission_attributes import Attributes, Verb


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
    """One ResourceQuota.

    `hard` and `used` are fields of the quota's status, because admission decides on the status, not on the spec.
    """

    def __init__(self, obj: Object) -> None:
        """Decode `obj`."""
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
        self._limits: dict[str, int] = {}
        self._spent: Mapping[str, Quantity] = {}  # the amounts in `used`, parsed

    def limited(self, evaluator: Evaluator) -> Sequence[str]:
        """Return the sorted names of the quota's limits that apply to objects of a kind."""
        names = self._limited.get(evaluator)
        if names is None:
            names = self._limited[evaluator] = sorted(evaluator.names(self.hard))
        return names

    def has_in_scope(self, evaluator: Evaluator, fields: Fields) -> bool:
        """Return whether an object is in all scopes of the quota."""
        return all(evaluator.in_scope(each, fields) for each in self.requirements)

    def matches(self, evaluator: Evaluator, fields: Fields) -> bool:
        """Return whether the quota applies to an object."""
        return bool(self.limited(evaluator)) and self.has_in_scope(evaluator, fields)

    def limit(self, name: str) -> int:
        """Return the quota's limit of a resource, in billionths."""
        limit = self._limits.get(name)
        if limit is None:
            limit = self._limits[name] = parse(self.hard[name])
        return limit

    def with_more(self, more: Mapping[str, Quantity]) -> Mapping[str, Quantity]:
        """Return the used amounts of the limited resources after `more` is added."""
        return {name: self._with(name, amount) for name, amount in more.items() if name in self.hard}

    def _with(self, name: str, more: Quantity) -> Quantity:
        spent = self._spent.get(name)
        if spent is None:
            if name not in self.used:
                return more
            spent = Quantity.read(self.used[name])
        return spent.plus(more)

    def with_status(self, hard: Amounts, used: Amounts) -> Object:
        """Return a copy of the quota with another status and the same revision."""
        status = {"hard": dict(sorted(hard.items())), "used": dict(sorted(used.items()))}
        return self.object.with_field("status", status)

    def at(self, obj: Object) -> Quota:
        """Return a copy of the quota for a stored object with the same content."""
        return self._again(obj, self.used, self._spent)

    def charged(self, sums: Mapping[str, Quantity]) -> Quota:
        """Return a copy of the quota with these used amounts."""
        used = {**self.used, **{name: amount.text for name, amount in sums.items()}}
        return self._again(self.with_status(self.hard, used), used, {**self._spent, **sums})

    def _again(self, obj: Object, used: Amounts, spent: Mapping[str, Quantity]) -> Quota:
        again = object.__new__(Quota)
        again.__dict__ = {**self.__dict__, "object": obj, "used": used, "_spent": spent}
        return again


class Limited(NamedTuple):
    """A resource that may be used only if a quota covers it (LimitedResource of the plugin's configuration)."""

    resource: Resource
    contains: Sequence[str] = ()
    """Substrings that the names of the limited resources contain."""
    scopes: Sequence[Requirement] = ()


class LazyUsage:
    """The usage of a new object, which is computed on first use."""

    def __init__(self, evaluator: Evaluator, fields: Fields, now: str) -> None:
        """Measure an object with `evaluator`; `now` is the current time (RFC 3339)."""
        self.evaluator = evaluator
        self.fields = fields
        self._now = now
        self._problems: dict[tuple[str, ...], str] = {}

    @cached_property
    def amounts(self) -> Amounts:
        """The used amounts by the name of the resource."""
        return self.evaluator.usage(self.fields, self._now)

    @cached_property
    def negative(self) -> Sequence[str]:
        """The sorted names of the resources whose usage decreases."""
        return sorted(name for name, amount in self.amounts.items() if parse(amount) < 0)

    @cached_property
    def anything(self) -> Mapping[str, Quantity]:
        """The used amounts that are not zero, by the name of the resource."""
        return _read(self.amounts)

    def problem(self, required: Sequence[str]) -> str:
        """Return an error if the object does not set the amounts that the quota's limits `required` need.

        If no amount is missing, an empty string is returned.
        """
        key = tuple(required)
        problem = self._problems.get(key)
        if problem is None:
            problem = self._problems[key] = self.evaluator.problem(required, self.fields)
        return problem


def _read(amounts: Amounts) -> Mapping[str, Quantity]:
    """Return the amounts that are not zero."""
    read = {name: Quantity.read(amount) for name, amount in amounts.items()}
    return {name: quantity for name, quantity in read.items() if quantity.amount}


def charges(
    attributes: Attributes, use: LazyUsage, quotas: Sequence[Quota], limited: Sequence[Limited] = ()
) -> list[Quota]:
    """Return the quotas to which a write is charged, with the charge added.

    Raises `Forbidden` if the write exceeds a quota; the error names the first such quota.
    """
    evaluator, fields = use.evaluator, use.fields
    concerned = [quota for quota in quotas if quota.matches(evaluator, fields)]
    for quota in concerned:
        _check(attributes, use, quota)
    if use.negative:
        raise attributes.forbidden(f"quota usage is negative for resource(s): {','.join(use.negative)}")
    more = _more(attributes, use, concerned)
    if not any(more.values()):
        return []
    _check_limited(attributes, evaluator, quotas, concerned, use.amounts, limited)
    charged = (_charged(attributes, quota, more[quota.name]) for quota in concerned if more[quota.name])
    return [each for each in charged if each is not None]


def _check(attributes: Attributes, use: LazyUsage, quota: Quota) -> None:
    """Raise `Forbidden` if the object lacks required amounts, or if no controller has counted the quota's usage yet."""
    names = quota.limited(use.evaluator)
    if problem := use.problem(names):
        raise attributes.forbidden(f"failed quota: {quota.name}: {problem}")
    if not all(map(quota.used.__contains__, names)):
        raise attributes.forbidden(f"status unknown for quota: {quota.name}, resources: {','.join(names)}")


def _more(attributes: Attributes, use: LazyUsage, concerned: Sequence[Quota]) -> Mapping[str, Mapping[str, Quantity]]:
    """Return the increase in usage for each quota, by the quota's name.

    If no quota applies, the result contains the increase under an empty name.
    """
    old = attributes.old
    if attributes.operation is Verb.CREATE or old is None:
        return {quota.name: use.anything for quota in concerned} or {"": use.anything}
    grown = _read(subtracted(use.amounts, use.evaluator.usage(old, attributes.now)))
    if not concerned:
        return {"": grown}
    return {
        quota.name: grown
        if quota.matches(use.evaluator, old)
        else use.anything  # the object was not in the scopes of the quota before
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
    """Raise `Forbidden` if the write uses a resource that must be covered by a quota, and no quota covers it.

    The plugin's configuration lists the resources that a quota must cover.
    """
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
    matching = [scope for each in limited for scope in each.scopes if evaluator.in_scope(scope, fields)]
    found = {each.scope for quota in quotas for each in quota.requirements if evaluator.in_scope(each, fields)}
    if uncovered := [str(each) for each in matching if each.scope not in found]:
        raise attributes.forbidden(f"insufficient quota to match these scopes: [{' '.join(uncovered)}]")


def _charged(attributes: Attributes, quota: Quota, more: Mapping[str, Quantity]) -> Quota | None:
    """Return a copy of the quota with the increase added; None if no limit of the quota covers the increase."""
    sums = quota.with_more(more)
    if not sums:
        return None
    if attributes.subresource != "status":
        over = [name for name, amount in sums.items() if amount.amount > quota.limit(name)]
        if over:
            requested = {name: more[name].text for name in over}
            amounts = (requested, *(masked(each, over) for each in (quota.used, quota.hard)))
            requested_amount, so_far, limit = (printed(each) for each in amounts)
            raise attributes.forbidden(
                f"exceeded quota: {quota.name}, requested: {requested_amount}, used: {so_far}, limited: {limit}"
            )
    return quota.charged(sums)


def configured(value: Mapping[str, Any]) -> Limited:
    """Parse one `limitedResources` entry of the plugin's configuration."""
    scopes = [
        Requirement(each.get("scopeName") or "", each.get("operator") or "", each.get("values") or ())
        for each in value.get("matchScopes") or ()
    ]
    resource = Resource(value.get("apiGroup") or "", value.get("resource") or "")
    return Limited(resource, value.get("matchContains") or (), scopes)

"""The kinds that a policy is checked against: those that its rules name outright, ten of a rule at most.

Guarantees: pure; the same rules and kinds give the same kinds, in the order of group, version and name. A rule with a
star for groups or versions names none, a star or a subresource among resources is left out.

Source: apiserver `pkg/admission/plugin/policy/validating/typechecking.go` (`typesToCheck`), apimachinery
`pkg/api/meta/restmapper.go` (`ResourcesFor`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, product
from typing import Any, Final

from ctrlmgr.engine.kind import Kind

MOST: Final = 10
"""How many kinds are taken of one rule (`maxTypesToCheck`); when one has so many, no further rule is read."""


def kinds_to_check(spec: Mapping[str, Any], kinds: Iterable[Kind]) -> list[Kind]:
    """Return the kinds that the rules of a policy name."""
    found: dict[Kind, None] = {}
    by_name = _by_name(kinds)
    for rule in (spec.get("matchConstraints") or {}).get("resourceRules") or ():
        named = list(islice(_named(rule, by_name), MOST))
        found.update(dict.fromkeys(named))
        if len(named) == MOST:
            break
    return sorted(found, key=lambda each: each.gvk)


_Index = Mapping[tuple[str, str], Sequence[Kind]]


def _by_name(kinds: Iterable[Kind]) -> _Index:
    """Return the kinds by version and name, which may be the singular one."""
    found: dict[tuple[str, str], list[Kind]] = {}
    for kind in kinds:
        for name in dict.fromkeys((kind.resource.plural, kind.singular or kind.name.lower())):
            found.setdefault((kind.gvk.version, name), []).append(kind)
    return found


def _named(rule: Mapping[str, Any], by_name: _Index) -> Iterator[Kind]:
    groups, versions = sorted(rule.get("apiGroups") or ()), sorted(rule.get("apiVersions") or ())
    if any("*" in each for each in (*groups, *versions)):
        return
    resources = sorted(each for each in rule.get("resources") or () if "*" not in each and "/" not in each)
    for group, version, resource in product(groups, versions, resources):
        for kind in by_name.get((version, resource.lower()), ()):
            if not group or kind.gvk.group == group:  # of no group is what any group has, as for `kubectl get`
                yield kind

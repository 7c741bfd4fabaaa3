"""Finds the kinds against which a policy is checked: the kinds that its rules name, at most ten per rule.

Guarantees: all functions are pure, and the kinds are sorted by group, version and name. If a rule has a wildcard in its
groups or versions, the rule is skipped. If a resource in a rule has a wildcard or a subresource, the resource is
skipped. Source: apiserver `pkg/admission/plugin/policy/validating/typechecking.go` (`typesToCheck`), apimachinery
`pkg/api/meta/restmapper.go` (`ResourcesFor`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, product
from typing import Any, Final

from ctrlmgr.engine.kind import Kind

MOST: Final = 10
"""The maximum number of kinds per rule (`maxTypesToCheck`). After a rule that reaches the maximum, no further rules are
read.
"""


def kinds_to_check(spec: Mapping[str, Any], kinds: Iterable[Kind]) -> list[Kind]:
    """Return the kinds that the rules of a policy name without wildcards."""
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
    """Return all served kinds, keyed by their version and their plural or singular name."""
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
            if not group or kind.gvk.group == group:  # An empty group matches every group, as in `kubectl get`.
                yield kind

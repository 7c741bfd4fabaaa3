"""Merges the API groups that several servers serve, as APIGroupDiscovery objects.

Guarantees: the order of groups, versions and resources in each server's document is kept; names without an order are
sorted. If the servers' orders contradict each other, all names are sorted. The result does not depend on which server
merges, so all servers of a log give equal documents.

Source: apiserver `pkg/endpoints/discovery/aggregated/peer_aggregated_handler.go`, apimachinery `pkg/util/sort`.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Container, Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

from ctrlmgr.api.unstructured import Unstructured

_Merge: TypeAlias = Callable[[Unstructured, Unstructured], Unstructured]


def merged_groups(
    own: str, groups: Sequence[Unstructured], peers: Mapping[str, Sequence[Unstructured]]
) -> Sequence[Unstructured]:
    """Return this server's groups merged with those of its peers.

    `own` is the name of this server; `peers` contains the groups of each peer by the peer's name.
    """
    if not peers:
        return groups
    servers = {**peers, own: groups}
    return _merged([servers[name] for name in sorted(servers)], _group_name, _merged_group)


def without_versions(groups: Sequence[Unstructured], excluded: Container[tuple[str, str]]) -> Sequence[Unstructured]:
    """Return `groups` without the excluded versions, and without groups that have no other version."""
    kept = []
    for group in groups:
        name, versions = _group_name(group), group.get("versions") or ()
        left = [each for each in versions if (name, each.get("version", "")) not in excluded]
        if len(left) == len(versions):
            kept.append(group)
        elif left:
            kept.append({**group, "versions": left})
    return kept


def in_common_order(lists: Sequence[Sequence[str]]) -> Sequence[str]:
    """Return all names in an order that each list has, with the least name first where no list has an order.

    If the lists contradict each other, the names are sorted (`MergePreservingRelativeOrder`).
    """
    names = {name for each in lists for name in each}
    for each in lists:
        if len(each) == len(names) == len({*each}):
            return each
    later: dict[str, set[str]] = {name: set() for name in names}
    for each in lists:
        for name, following in pairwise(each):
            later[name].add(following)
    found = _sorted_topologically(later)
    return found if len(found) == len(names) else sorted(names)


def _sorted_topologically(later: Mapping[str, set[str]]) -> list[str]:
    """Return the names in an order in which all `later` names of a name follow it; names in a cycle are left out."""
    earlier = dict.fromkeys(later, 0)
    for names in later.values():
        for name in names:
            earlier[name] += 1
    ready = [name for name, count in earlier.items() if not count]
    heapq.heapify(ready)
    found = []
    while ready:
        name = heapq.heappop(ready)
        found.append(name)
        for each in later[name]:
            earlier[each] -= 1
            if not earlier[each]:
                heapq.heappush(ready, each)
    return found


def _merged(
    lists: Sequence[Sequence[Unstructured]], name_of: Callable[[Unstructured], str], merge: _Merge
) -> list[Unstructured]:
    """Return the items of all lists; items with the same name are merged."""
    items: dict[str, Unstructured] = {}
    for item in (each for found in lists for each in found):
        name = name_of(item)
        items[name] = merge(items[name], item) if name in items else item
    return [items[name] for name in in_common_order([[*map(name_of, each)] for each in lists])]


def _group_name(group: Unstructured) -> str:
    return str(group["metadata"].get("name", ""))


def _merged_group(first: Unstructured, second: Unstructured) -> Unstructured:
    lists = [first.get("versions") or (), second.get("versions") or ()]
    return {**first, "versions": _merged(lists, lambda each: str(each.get("version", "")), _merged_version)}


def _merged_version(first: Unstructured, second: Unstructured) -> Unstructured:
    lists = [first.get("resources") or (), second.get("resources") or ()]
    resources = _merged(lists, lambda each: str(each.get("resource", "")), _merged_resource)
    return {**first, "resources": resources} if resources else first


def _merged_resource(first: Unstructured, second: Unstructured) -> Unstructured:
    """Return a resource with the verbs and subresources of both (`mergeResourceCapabilities`)."""
    if first == second:
        return first
    verbs = sorted({*(first.get("verbs") or ()), *(second.get("verbs") or ())})
    parts: dict[str, Any] = {
        each["subresource"]: each for found in (first, second) for each in found.get("subresources") or ()
    }
    more = {"subresources": [parts[name] for name in sorted(parts)]} if parts else {}
    return {**first, "verbs": verbs, **more}

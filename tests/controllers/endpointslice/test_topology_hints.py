"""Tests of topology hints by zones, by nodes, and by the CPU of all zones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from ctrlmgr.api.discovery import Endpoint, EndpointConditions, EndpointHints, ForNode, ForZone
from ctrlmgr.api.object import Object
from ctrlmgr.controllers.endpointslice.slice_packing import Changes, Draft
from ctrlmgr.controllers.endpointslice.topology_hints import (
    Allocation,
    Shares,
    allocate,
    asks_for_topology,
    balance,
    hint,
    hint_by_cpu,
)

THIRDS = {"a": 1 / 3, "b": 1 / 3, "c": 1 / 3}


def endpoint(zone: str | None = "a", node: str | None = "n", *, ready: bool = True, hints: str = "") -> Endpoint:
    """Return an endpoint; each character of `hints` is the name of a zone in the endpoint's hints."""
    found = EndpointHints([ForZone(each) for each in hints]) if hints else None
    return Endpoint(["10.0.0.1"], EndpointConditions(ready=ready), node_name=node, zone=zone, hints=found)


def zones(text: str, hints: str = "") -> list[Endpoint]:
    """Return ready endpoints; each character of `text` is the zone of an endpoint, and the character of `hints` at the
    same index is the zone in its hints.
    """
    return [endpoint(zone, hints=hints[at : at + 1]) for at, zone in enumerate(text)]


def a_draft(endpoints: Sequence[Endpoint]) -> Draft:
    fields = {
        "kind": "EndpointSlice",
        "apiVersion": "discovery.k8s.io/v1",
        "metadata": {"name": "web-1", "namespace": "default"},
        "endpoints": msgspec.to_builtins(endpoints),
    }
    return Draft.of(Object.from_dict(fields))


def hinted(endpoints: Sequence[Endpoint]) -> str:
    """Return the zones in the hints of endpoints as a string with one character for each endpoint; `-` stands for no
    hints.
    """
    return "".join(each.hints.for_zones[0].name if each.hints and each.hints.for_zones else "-" for each in endpoints)


@pytest.mark.parametrize(
    ("annotations", "asks"),
    [
        pytest.param({}, False, id="no annotation"),
        pytest.param({"service.kubernetes.io/topology-mode": "Auto"}, True, id="Auto"),
        pytest.param({"service.kubernetes.io/topology-mode": "auto"}, True, id="auto"),
        pytest.param({"service.kubernetes.io/topology-mode": "Disabled"}, False, id="anything else"),
        pytest.param({"service.kubernetes.io/topology-aware-hints": "Auto"}, True, id="the older annotation"),
        pytest.param(
            {"service.kubernetes.io/topology-mode": "Auto", "service.kubernetes.io/topology-aware-hints": "disabled"},
            False,
            id="which counts if it is there",
        ),
    ],
)
def test_topology_hints_by_cpu(annotations: Mapping[str, str], asks: bool) -> None:
    assert asks_for_topology(annotations) is asks


ZONE = EndpointHints([ForZone("a")])
NODE = EndpointHints(None, [ForNode("n")])
BOTH = EndpointHints([ForZone("a")], [ForNode("n")])


@pytest.mark.parametrize(
    ("distribution", "given", "expected"),
    [
        pytest.param("PreferClose", endpoint(), ZONE, id="close is the zone"),
        pytest.param("PreferSameZone", endpoint(), ZONE, id="the same zone"),
        pytest.param(
            "PreferSameNode",
            endpoint(),
            EndpointHints([ForZone("a")], [ForNode("n")]),
            id="the same node, else the zone",
        ),
        pytest.param("PreferSameNode", endpoint(zone=None), NODE, id="a node in no zone"),
        pytest.param("PreferSameNode", endpoint(node=None), ZONE, id="no node"),
        pytest.param("PreferSameZone", endpoint(zone=None), None, id="no zone"),
        pytest.param("PreferSameZone", endpoint(ready=False), None, id="not ready"),
        pytest.param("PreferSameZone", endpoint(hints="b"), ZONE, id="a hint for another zone"),
        pytest.param("PreferSameZone", endpoint(hints="ab"), ZONE, id="a hint too many"),
        pytest.param("", endpoint(), None, id="no distribution"),
        pytest.param("", endpoint(hints="a"), None, id="no longer a distribution"),
        pytest.param("Whatever", endpoint(hints="a"), None, id="one that nobody knows"),
    ],
)
@pytest.mark.parametrize("place", ["create", "update", "unchanged"])
def test_hints_by_traffic_distribution(
    distribution: str, given: Endpoint, expected: EndpointHints | None, place: str
) -> None:
    draft = a_draft([given])
    changes = Changes(**{place: [draft]})
    hint(changes, distribution)
    [after] = draft.endpoints
    assert after == replace(given, hints=expected)
    if place == "unchanged":
        assert changes.update == ([draft] if given.hints != expected else [])
        assert changes.unchanged == ([] if given.hints != expected else [draft])


def test_correct_hints_cause_no_write() -> None:
    wrong, right = a_draft(zones("ab")), a_draft(zones("ab", "ab"))
    changes = Changes(unchanged=[wrong, right])
    hint(changes, "PreferClose")
    assert (changes.update, changes.unchanged) == ([wrong], [right])


@pytest.mark.parametrize(
    ("shares", "count", "expected"),
    [
        pytest.param(None, 10, None, id="unknown shares"),
        pytest.param({"a": 1.0}, 10, None, id="one zone"),
        pytest.param(THIRDS, 2, None, id="fewer endpoints than zones"),
        pytest.param(THIRDS, 3, {zone: Allocation(1, 1, 1.0) for zone in "abc"}, id="one for each zone"),
        pytest.param(THIRDS, 4, None, id="two for each would be too many, one for some too few"),
        pytest.param(
            {"a": 0.5, "b": 0.5}, 10, {zone: Allocation(5, 5, 5.0) for zone in "ab"}, id="halves, and nothing to spare"
        ),
        pytest.param(
            {"a": 0.75, "b": 0.25},
            20,
            {"a": Allocation(13, 15, 15.0), "b": Allocation(5, 7, 5.0)},
            id="a fifth less is enough",
        ),
    ],
)
def test_allocations(shares: Shares | None, count: int, expected: dict[str, Allocation] | None) -> None:
    assert allocate(shares, count) == expected


def desired(**of: float) -> dict[str, Allocation]:
    return {zone: Allocation(0, 99, each) for zone, each in of.items()}


@pytest.mark.parametrize(
    ("allocations", "allotted", "giving", "receiving"),
    [
        pytest.param(desired(a=1, b=1), {"a": 1, "b": 1}, {}, {}, id="as it should be"),
        pytest.param(desired(a=1, b=1, c=1), {"a": 3}, {"a": 2}, {"b": 1, "c": 1}, id="from where all are"),
        pytest.param(desired(a=1.4, b=1.6), {"a": 2, "b": 1}, {}, {}, id="less than one to give and to receive"),
        pytest.param(desired(a=1, b=0.6, c=1.4), {"a": 2, "b": 1}, {"a": 1}, {"c": 1}, id="from who has most"),
        pytest.param(desired(a=2.6, b=2.7, c=0.7), {"a": 3, "b": 3}, {}, {}, id="less than half to give"),
        pytest.param(desired(a=3, b=3), {"a": 0, "b": 6}, {"b": 3}, {"a": 3}, id="several"),
    ],
)
def test_balancing(
    allocations: dict[str, Allocation], allotted: dict[str, int], giving: dict[str, int], receiving: dict[str, int]
) -> None:
    assert balance(allocations, allotted) == (Counter(giving), Counter(receiving))


@pytest.mark.parametrize(
    ("shares", "endpoints", "expected"),
    [
        pytest.param(THIRDS, "abc", "abc", id="each for its own zone"),
        pytest.param(THIRDS, "aaa", "bca", id="some for others, the first by name where several lack"),
        pytest.param({"a": 0.5, "b": 0.5}, "aaab", "baab", id="as many as it takes"),
        pytest.param(THIRDS, "aa", "--", id="too few"),
        pytest.param(THIRDS, "aabb", "----", id="would overload a zone"),
        pytest.param(None, "abc", "---", id="the nodes do not say"),
        pytest.param({"a": 0.5, "b": 0.5}, "abz", "---", id="three cannot be halved"),
        pytest.param({"a": 0.5, "b": 0.5}, "abzz", "abzz", id="a zone without CPU keeps its own"),
    ],
)
def test_hints_by_cpu(shares: Shares | None, endpoints: str, expected: str) -> None:
    draft = a_draft(zones(endpoints))
    changes = Changes(create=[draft])
    assert hint_by_cpu(changes, shares) is ("-" not in expected)
    assert hinted(draft.endpoints) == expected


def test_unready_endpoints_are_ignored() -> None:
    draft = a_draft([*zones("ab"), endpoint("a", ready=False, hints="a")])
    assert hint_by_cpu(Changes(update=[draft]), {"a": 0.5, "b": 0.5})
    assert hinted(draft.endpoints) == "ab-"


@pytest.mark.parametrize("zone", [None, ""])
def test_an_endpoint_without_a_zone_removes_all_hints(zone: str | None) -> None:
    new, unchanged = a_draft([endpoint("a"), endpoint(zone)]), a_draft(zones("ab", "ab"))
    changes = Changes(create=[new], unchanged=[unchanged])
    assert not hint_by_cpu(changes, {"a": 0.5, "b": 0.5})
    assert (hinted(new.endpoints), hinted(unchanged.endpoints)) == ("--", "--")
    assert changes.update == [unchanged]


@pytest.mark.parametrize(
    ("endpoints", "hints", "stays"),
    [
        pytest.param("abab", "abab", True, id="hints that fit"),
        pytest.param("aabb", "abab", True, id="hints for other zones that fit as well"),
        pytest.param("abab", "ab", False, id="a hint is missing"),
        pytest.param("abab", "abaz", False, id="a hint for a zone without CPU"),
        pytest.param("abab", "aaab", False, id="too many for one zone"),
    ],
)
def test_unchanged_slices_keep_fitting_hints(endpoints: str, hints: str, stays: bool) -> None:
    draft = a_draft(zones(endpoints, hints))
    changes = Changes(unchanged=[draft])
    assert hint_by_cpu(changes, {"a": 0.5, "b": 0.5})
    assert changes.unchanged == ([draft] if stays else [])
    assert hinted(draft.endpoints) == (hints if stays else "abab")


def test_changed_slices_balance_the_hints_of_unchanged_ones() -> None:
    unchanged, new = a_draft(zones("aa", "aa")), a_draft(zones("aa"))
    changes = Changes(create=[new], unchanged=[unchanged])
    assert hint_by_cpu(changes, {"a": 0.5, "b": 0.5})
    assert (hinted(unchanged.endpoints), hinted(new.endpoints)) == ("aa", "bb")


many_zones = st.lists(st.sampled_from("abc"), min_size=1, max_size=12).map("".join)
some_shares = st.lists(st.integers(1, 9), min_size=2, max_size=3).map(
    lambda parts: {zone: part / sum(parts) for zone, part in zip("abc", parts, strict=False)}
)


def said_again(slices: Sequence[Draft], shares: Shares) -> list[Draft]:
    """Return the slices after hints were computed again without any other change."""
    again = [a_draft(draft.endpoints) for draft in slices]
    hint_by_cpu(Changes(unchanged=list(again)), shares)
    return again


def test_an_excess_in_an_unchanged_slice_is_corrected_once() -> None:
    """As in Kubernetes, a zone with less than half an endpoint too many gives no endpoint to another zone, even if the
    zone exceeds its maximum.

    The share of the zone `b` is 4.5 of 10 endpoints, its maximum is 4, and it has 5 endpoints after the second round.
    """
    shares = {"a": 4 / 11, "b": 5 / 11, "c": 2 / 11}
    old, new = a_draft(zones("aaaaaa")), a_draft(zones("aabb"))
    hint_by_cpu(Changes(create=[old]), shares)
    assert hinted(old.endpoints) == "bbbcaa"
    hint_by_cpu(Changes(create=[new], unchanged=[old]), shares)
    assert [hinted(draft.endpoints) for draft in (new, old)] == ["aabb", "bbbcaa"]
    third = said_again([new, old], shares)
    assert [hinted(draft.endpoints) for draft in third] == ["aabb", "bbccaa"]
    assert [hinted(draft.endpoints) for draft in said_again(third, shares)] == ["aabb", "bbccaa"]


@settings(max_examples=200, deadline=None)
@given(st.lists(many_zones, min_size=1, max_size=3), some_shares, many_zones)
def test_hints_converge(slices: list[str], shares: Shares, more: str) -> None:
    changes = Changes(create=[a_draft(zones(each)) for each in slices])
    hint_by_cpu(changes, shares)
    changes = Changes(create=[a_draft(zones(more))], unchanged=[a_draft(draft.endpoints) for draft in changes])
    hint_by_cpu(changes, shares)
    settled = said_again(list(changes), shares)
    again = said_again(settled, shares)
    assert [hinted(draft.endpoints) for draft in again] == [hinted(draft.endpoints) for draft in settled]

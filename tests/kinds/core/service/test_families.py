from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.errors import Invalid
from ctrlmgr.kinds.allocators.allocation import Allocator
from ctrlmgr.kinds.allocators.service_ranges import Ranges
from tests.kinds.core.service.service_stage import DUAL, Stage, causes

PORTS = {"ports": [{"port": 80}], "selector": {"a": "b"}}
HEADLESS = {"clusterIP": "None", "selector": {"a": "b"}}
WITHOUT_SELECTOR = {"clusterIP": "None"}
FOUR = Ranges.parse("10.96.0.0/16", "30000-32767")
SIX = Ranges.parse("fd00:10:96::/112", "30000-32767")
SIX_FOUR = Ranges.parse("fd00:10:96::/112,10.96.0.0/16", "30000-32767")
SINGLE, PREFER, REQUIRE = (
    {"ipFamilyPolicy": policy} for policy in ("SingleStack", "PreferDualStack", "RequireDualStack")
)
IPV4, IPV6 = ({"ipFamilies": [family]} for family in ("IPv4", "IPv6"))

CREATED = [
    (FOUR, PORTS, "SingleStack", ["IPv4"]),
    (SIX, PORTS, "SingleStack", ["IPv6"]),
    (DUAL, PORTS, "SingleStack", ["IPv4"]),
    (SIX_FOUR, PORTS, "SingleStack", ["IPv6"]),
    (DUAL, PORTS | IPV6, "SingleStack", ["IPv6"]),
    (DUAL, PORTS | SINGLE | IPV6, "SingleStack", ["IPv6"]),
    (FOUR, PORTS | PREFER, "PreferDualStack", ["IPv4"]),
    (DUAL, PORTS | PREFER, "PreferDualStack", ["IPv4", "IPv6"]),
    (DUAL, PORTS | PREFER | IPV6, "PreferDualStack", ["IPv6", "IPv4"]),
    (SIX_FOUR, PORTS | REQUIRE, "RequireDualStack", ["IPv6", "IPv4"]),
    (DUAL, PORTS | REQUIRE | IPV4, "RequireDualStack", ["IPv4", "IPv6"]),
    (DUAL, PORTS | {"clusterIP": "fd00:10:96::7"}, "SingleStack", ["IPv6"]),
    (DUAL, PORTS | PREFER | {"clusterIP": "fd00:10:96::7"}, "PreferDualStack", ["IPv6", "IPv4"]),
    (DUAL, HEADLESS, "SingleStack", ["IPv4"]),
    (DUAL, HEADLESS | IPV6, "SingleStack", ["IPv6"]),
    (DUAL, HEADLESS | PREFER, "PreferDualStack", ["IPv4", "IPv6"]),
    (FOUR, WITHOUT_SELECTOR, "RequireDualStack", ["IPv4", "IPv6"]),
    (SIX, WITHOUT_SELECTOR, "RequireDualStack", ["IPv6", "IPv4"]),
    (FOUR, WITHOUT_SELECTOR | IPV6, "RequireDualStack", ["IPv6", "IPv4"]),
    (FOUR, WITHOUT_SELECTOR | SINGLE, "SingleStack", ["IPv4"]),
    (FOUR, WITHOUT_SELECTOR | PREFER, "PreferDualStack", ["IPv4", "IPv6"]),
]


@pytest.mark.parametrize(("ranges", "spec", "policy", "families"), CREATED)
def test_families_of_a_new_service(ranges: Ranges, spec: dict[str, Any], policy: str, families: list[str]) -> None:
    created = Stage(ranges).create(spec)["spec"]
    assert (created["ipFamilyPolicy"], created["ipFamilies"]) == (policy, families)
    if spec.get("clusterIP") == "None":
        assert created["clusterIPs"] == ["None"]
    else:
        assert ["IPv6" if ":" in address else "IPv4" for address in created["clusterIPs"]] == families
        assert created["clusterIP"] == created["clusterIPs"][0]


DUAL_ASKED = "must be 'RequireDualStack' or 'PreferDualStack' when multiple {} are specified"
REFUSED = [
    (
        DUAL,
        PORTS | {"ipFamilies": ["IPv4", "IPv6"]},
        [("spec.ipFamilyPolicy", f'Invalid value: "SingleStack": {DUAL_ASKED.format("IP families")}')],
    ),
    (
        DUAL,
        PORTS | {"clusterIP": "10.96.0.9", "clusterIPs": ["10.96.0.9", "fd00:10:96::9"]},
        [("spec.ipFamilyPolicy", f'Invalid value: "SingleStack": {DUAL_ASKED.format("cluster IPs")}')],
    ),
    (
        FOUR,
        PORTS | REQUIRE,
        [
            (
                "spec.ipFamilyPolicy",
                'Invalid value: "RequireDualStack": this cluster is not configured for dual-stack services',
            )
        ],
    ),
    (FOUR, PORTS | IPV6, [("spec.ipFamilies[0]", 'Invalid value: "IPv6": not configured on this cluster')]),
    (
        FOUR,
        PORTS | {"clusterIP": "fd00:10:96::9"},
        [("spec.clusterIPs[0]", 'Invalid value: ["fd00:10:96::9"]: IPv6 is not configured on this cluster')],
    ),
]


@pytest.mark.parametrize(("ranges", "spec", "found"), REFUSED)
def test_unavailable_families_are_refused(ranges: Ranges, spec: dict[str, Any], found: list[tuple[str, str]]) -> None:
    with pytest.raises(Invalid) as refusal:
        Stage(ranges).create(spec)
    assert causes(refusal.value) == found


def families_of(service: dict[str, Any]) -> tuple[str, list[str], int]:
    spec = service["spec"]
    return spec["ipFamilyPolicy"], spec["ipFamilies"], len(spec["clusterIPs"])


def test_a_service_becomes_dual_stack_and_single_stack_again_keeping_its_first_address() -> None:
    stage = Stage()
    first = stage.create(PORTS)["spec"]["clusterIP"]
    dual = stage.patch({"spec": PREFER})
    assert families_of(dual) == ("PreferDualStack", ["IPv4", "IPv6"], 2)
    assert stage.claimed() == dict.fromkeys(dual["spec"]["clusterIPs"], "ns/s")
    single = stage.patch({"spec": SINGLE})
    assert families_of(single) == ("SingleStack", ["IPv4"], 1)
    assert single["spec"]["clusterIP"] == dual["spec"]["clusterIP"] == first
    assert stage.claimed() == {first: "ns/s"}


def test_the_second_address_can_be_requested() -> None:
    stage = Stage()
    first = stage.create(PORTS)["spec"]["clusterIP"]
    dual = stage.patch({"spec": REQUIRE | {"clusterIPs": [first, "fd00:10:96::42"]}})
    assert dual["spec"]["clusterIPs"] == [first, "fd00:10:96::42"]


def test_a_service_preferring_dual_stack_is_unchanged_when_the_cluster_changes() -> None:
    stage = Stage(FOUR)
    stage.create(PORTS | PREFER)
    stage.strategy.allocator = Allocator(DUAL)
    assert families_of(stage.patch({"spec": {"publishNotReadyAddresses": True}})) == ("PreferDualStack", ["IPv4"], 1)
    assert families_of(stage.patch({"spec": REQUIRE})) == ("RequireDualStack", ["IPv4", "IPv6"], 2)
    stage.strategy.allocator = Allocator(FOUR)
    with pytest.raises(Invalid, match="not configured for dual-stack"):
        stage.patch({"spec": {"publishNotReadyAddresses": False}})


def test_an_update_without_a_policy_keeps_the_old_one() -> None:
    stage = Stage()
    stage.create(PORTS | REQUIRE)
    new = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": PORTS}
    assert families_of(stage.update(new)) == ("RequireDualStack", ["IPv4", "IPv6"], 2)


def test_headless_services_can_change_families() -> None:
    stage = Stage()
    stage.create(HEADLESS)
    assert families_of(stage.patch({"spec": IPV6})) == ("SingleStack", ["IPv6"], 1)


def test_other_services_cannot_change_their_first_family() -> None:
    stage = Stage()
    stage.create(HEADLESS | PORTS | {"clusterIP": "10.96.0.9"})
    with pytest.raises(Invalid) as refusal:
        stage.patch({"spec": IPV6})
    assert causes(refusal.value) == [
        (
            "spec.clusterIPs[0]",
            'Invalid value: "10.96.0.9": expected an IPv6 value as indicated by `ipFamilies[0]`',
        )
    ]

from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.controllers.persistentvolume_binder.volume_matching import best, is_bound_to, mismatch

MODES = {"O": "ReadWriteOnce", "M": "ReadWriteMany", "R": "ReadOnlyMany"}
Thing = dict[str, Any]


def volume(name: str, size: str = "1Gi", modes: str = "O", **spec: Any) -> Thing:
    """Return an available PersistentVolume; `meta` and `phase` are not part of its spec."""
    meta, phase = spec.pop("meta", {}), spec.pop("phase", "Available")
    given = {"capacity": {"storage": size}, "accessModes": [MODES[each] for each in modes], "storageClassName": "c"}
    return {"metadata": {"name": name, **meta}, "spec": {**given, **spec}, "status": {"phase": phase}}


def claim(size: str = "1Gi", modes: str = "O", **spec: Any) -> Thing:
    meta = {"name": "mine", "namespace": "a", "uid": "u", "resourceVersion": "1", **spec.pop("meta", {})}
    given = {"resources": {"requests": {"storage": size}}, "accessModes": [MODES[each] for each in modes]}
    return {"metadata": meta, "spec": {**given, "storageClassName": "c", **spec}, "status": {"phase": "Pending"}}


MINE = {"namespace": "a", "name": "mine"}


@pytest.mark.parametrize(
    ("volumes", "asks", "expected"),
    [
        pytest.param([], claim(), "", id="none there"),
        pytest.param([volume("v", "2Gi"), volume("w", "1Gi")], claim(), "w", id="the smallest"),
        pytest.param([volume("v", "1Gi"), volume("w", "1Gi")], claim(), "v", id="the first of equals"),
        pytest.param([volume("v", "1Gi")], claim("1025Mi"), "", id="too small"),
        pytest.param([volume("v", modes="OM"), volume("w", "9Gi")], claim(), "w", id="fewest modes before size"),
        pytest.param(
            [volume("v", modes="OMR"), volume("w", "9Gi", "OM")], claim(modes="M"), "w", id="modes it asks for"
        ),
        pytest.param([volume("v", modes="O")], claim(modes="M"), "", id="modes that it lacks"),
        pytest.param([volume("v", storageClassName="d")], claim(), "", id="another class"),
        pytest.param(
            [volume("v", meta={"annotations": {"volume.beta.kubernetes.io/storage-class": "d"}})],
            claim(storageClassName="d"),
            "v",
            id="the class in its annotation",
        ),
        pytest.param([volume("v", volumeMode="Block")], claim(), "", id="a device"),
        pytest.param([volume("v", volumeMode="Block")], claim(volumeMode="Block"), "v", id="a device is asked for"),
        pytest.param([volume("v", phase="Released")], claim(), "", id="not available"),
        pytest.param([volume("v", meta={"deletionTimestamp": "t"})], claim(), "", id="going"),
        pytest.param([volume("v", volumeAttributesClassName="x")], claim(), "", id="other attributes"),
        pytest.param(
            [volume("v"), volume("w", "9Gi", meta={"labels": {"disk": "ssd"}})],
            claim(selector={"matchLabels": {"disk": "ssd"}}),
            "w",
            id="by labels",
        ),
        pytest.param([volume("v"), volume("w", "9Gi", claimRef=MINE)], claim(), "w", id="reserved for it"),
        pytest.param([volume("w", "9Gi", claimRef={**MINE, "uid": "x"})], claim(), "", id="of one before it"),
        pytest.param([volume("w", claimRef=MINE)], claim("2Gi"), "", id="reserved, and too small"),
        pytest.param([volume("w", claimRef={"namespace": "a", "name": "other"})], claim(), "", id="another's"),
        pytest.param(
            [volume("w", claimRef=MINE, storageClassName="d", phase="Pending")],
            claim(),
            "w",
            id="reserved, whatever its class and phase",
        ),
    ],
)
def test_a_claim_gets_the_smallest_matching_volume(volumes: list[Thing], asks: Thing, expected: str) -> None:
    found = best(asks, volumes, delayed=False)
    assert (found or {"metadata": {"name": ""}})["metadata"]["name"] == expected


def test_a_claim_that_waits_for_a_pod_gets_only_a_reserved_volume() -> None:
    reserved = volume("w", claimRef=MINE)
    assert best(claim(), [volume("v")], delayed=True) is None
    assert best(claim(), [volume("v"), reserved], delayed=True) == reserved


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (volume("v"), ""),
        (volume("v", "1Mi"), "requested PV is too small"),
        (volume("v", storageClassName="d"), "storageClassName does not match"),
        (volume("v", volumeAttributesClassName="x"), "VolumeAttributesClassName does not match"),
        (volume("v", volumeMode="Block"), "incompatible volumeMode"),
        (volume("v", modes="M"), "incompatible accessMode"),
        (volume("v", modes="OM"), ""),
    ],
)
def test_reasons_that_a_volume_does_not_match_a_claim(found: Thing, expected: str) -> None:
    assert mismatch(found, claim()) == expected


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        (None, False),
        (MINE, True),
        ({**MINE, "uid": "u"}, True),
        ({**MINE, "uid": "x"}, False),
        ({**MINE, "name": "n"}, False),
    ],
)
def test_the_claim_reference_of_a_volume(reference: Thing | None, expected: bool) -> None:
    assert is_bound_to(volume("v", claimRef=reference), claim()) is expected

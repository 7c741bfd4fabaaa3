from __future__ import annotations

from typing import Any

import pytest

from ctrlmgr.controllers.workloads.controller_revisions import patch_bytes, revision_name, template_patch
from ctrlmgr.controllers.workloads.go_print import print_value
from ctrlmgr.controllers.workloads.hashes import revision_hash, safe_encoded, template_hash


def stored(labels: dict[str, str], image: str, **metadata: Any) -> dict[str, Any]:
    """Return a pod template in the form in which the API server stores it, with defaults."""
    container = {
        "name": "c",
        "image": image,
        "resources": {},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
    }
    spec = {
        "containers": [container],
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "securityContext": {},
        "schedulerName": "default-scheduler",
    }
    return {"metadata": {"labels": labels, **metadata}, "spec": spec}


@pytest.mark.parametrize(
    ("template", "name"),
    [
        (stored({"app": "web", "v": "1"}, "registry.example/app:1"), "7c6dfd9664"),
        (stored({"app": "web", "v": "2"}, "registry.example/app:2"), "fb7666478"),
        (stored({"app": "web", "v": "3"}, "registry.example/app:3"), "584c88c964"),
        (stored({"app": "back", "v": "1"}, "registry.example/app:1"), "b95979957"),
        (
            stored(
                {"app": "web", "v": "2"},
                "registry.example/app:3",
                annotations={"kubectl.kubernetes.io/restartedAt": "2026-01-02T03:04:05Z"},
            ),
            "c987b5787",
        ),
    ],
)
def test_a_template_has_the_hash_of_kubernetes_replica_set(template: dict[str, Any], name: str) -> None:
    assert template_hash(template, None) == name


def test_a_revision_has_the_name_of_kubernetes() -> None:
    data = patch_bytes(template_patch(stored({"app": "db"}, "registry.example/app:1")))
    assert revision_name("db", revision_hash(data, 0)) == "db-66897bfb94"


def test_a_collision_count_changes_the_hash() -> None:
    template = stored({"app": "web"}, "a")
    hashes = {template_hash(template, count) for count in (None, 0, 1, 2)}
    assert len(hashes) == 4


def test_the_order_of_keys_does_not_change_the_hash() -> None:
    template = stored({"app": "web", "v": "1"}, "a")
    turned = {"spec": dict(reversed(template["spec"].items())), "metadata": {"labels": {"v": "1", "app": "web"}}}
    assert template_hash(template, None) == template_hash(turned, None)


def test_names_have_no_vowels() -> None:
    encoded = safe_encoded("0123456789")
    assert len(encoded) == 10
    assert not set("aeiou013") & set(encoded)


def test_markup_is_escaped_like_go() -> None:
    assert patch_bytes({"b": "<&>", "a": 1}) == b'{"a":1,"b":"\\u003c\\u0026\\u003e"}'


def amount(value: int, scale: int, text: str, format_: str) -> str:
    number = f"{{value:(int64){value} scale:(resource.Scale){scale}}}"
    return (
        f"(resource.Quantity){{i:(resource.int64Amount){number} d:(resource.infDecAmount){{Dec:(*inf.Dec)<nil>}} "
        f"s:(string){text} Format:(resource.Format){format_}}}"
    )


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("0", amount(0, 0, "0", "DecimalSI")),
        ("00", amount(0, 0, "", "DecimalSI")),
        ("100m", amount(100, -3, "100m", "DecimalSI")),
        ("+1", amount(1, 0, "+1", "DecimalSI")),
        ("-250m", amount(-250, -3, "-250m", "DecimalSI")),
        ("0.5", amount(5, -1, "", "DecimalSI")),
        ("1.500", amount(1500, -3, "1.500", "DecimalSI")),
        ("1000", amount(1000, 0, "", "DecimalSI")),
        ("70Mi", amount(70 << 20, 0, "70Mi", "BinarySI")),
        ("64Mi", amount(64 << 20, 0, "", "BinarySI")),
        ("2k", amount(2, 3, "2k", "DecimalSI")),
        ("1e3", amount(1, 3, "1e3", "DecimalExponent")),
        ("1e4", amount(1, 4, "", "DecimalExponent")),
    ],
)
def test_quantities_are_printed_with_gos_cached_string(text: str, printed: str) -> None:
    assert print_value("resource.Quantity", text) == printed


def decimal(digits: str, scale: int, format_: str, negative: str = "false") -> str:
    number = f"{{unscaled:(big.Int){{neg:(bool){negative} abs:(big.nat)[{digits}]}} scale:(inf.Scale){scale}}}"
    return amount(0, 0, "", format_).replace("(*inf.Dec)<nil>", f"(*inf.Dec){number}")


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("1.5Gi", decimal("1610612736000000000", 9, "BinarySI")),
        ("-1.5Ki", decimal("1536000000000", 9, "BinarySI", "true")),
        ("0.1Ki", decimal("102400000000", 9, "BinarySI")),
        ("0.0001Ki", decimal("102400000", 9, "DecimalSI")),
        ("0.1n", decimal("1", 9, "DecimalSI")),
        ("1000000Gi", decimal("12191701588129087488 58207", 9, "BinarySI")),
        ("8Ei", decimal("9223372036854775807", 0, "BinarySI")),
        ("9223372036854775807", decimal("18446744072709551616 499999999", 9, "DecimalSI")),
    ],
)
def test_other_quantities_are_printed_as_decimals_with_nine_places(text: str, printed: str) -> None:
    assert print_value("resource.Quantity", text) == printed


def test_an_invalid_quantity_is_refused() -> None:
    with pytest.raises(ValueError, match="Qi' is not a quantity"):
        print_value("resource.Quantity", "1.5Qi")


def test_a_time_is_printed_as_decoded_from_protobuf() -> None:
    assert print_value("v1.Time", None) == (
        "(v1.Time){Time:(time.Time){wall:(uint64)0 ext:(int64)0 loc:(*time.Location)<nil>}}"
    )
    printed = print_value("v1.Time", "1970-01-01T00:00:01Z")
    assert "ext:(int64)62135596801 loc:(*time.Location){name:(string)UTC zone:([]time.zone)<nil> " in printed


def test_bytes_are_printed_as_numbers() -> None:
    assert print_value("*v1.FieldsV1", {"f:a": {}}) == (
        "(*v1.FieldsV1){Raw:([]uint8)[123 34 102 58 97 34 58 123 125 125]}"
    )


def test_embedded_structs_are_printed_as_fields() -> None:
    volume = print_value("v1.Volume", {"name": "data", "emptyDir": {}})
    assert volume.startswith("(v1.Volume){Name:(string)data VolumeSource:(v1.VolumeSource){HostPath:(*v1.Host")
    probe = print_value("v1.Probe", {"httpGet": {"path": "/", "port": "web"}, "periodSeconds": 5})
    assert probe.startswith("(v1.Probe){ProbeHandler:(v1.ProbeHandler){Exec:(*v1.ExecAction)<nil> HTTPGet:(*v1.HTTPGet")
    assert "Port:(intstr.IntOrString){Type:(intstr.Type)1 IntVal:(int32)0 StrVal:(string)web}" in probe
    key = print_value("v1.SecretKeySelector", {"name": "s", "key": "k"})
    assert key == (
        "(v1.SecretKeySelector){LocalObjectReference:(v1.LocalObjectReference){Name:(string)s} "
        "Key:(string)k Optional:(*bool)<nil>}"
    )


def test_empty_values_are_printed_as_absent() -> None:
    assert print_value("[]string", []) == "([]string)<nil>"
    assert print_value("v1.ResourceList", {}) == "(v1.ResourceList)<nil>"
    assert print_value("map[string]string", {"b": "2", "a": "1"}) == "(map[string]string)map[a:1 b:2]"

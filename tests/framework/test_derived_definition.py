"""Tests of the CustomResourceDefinition that is derived from a class, and of contradictions between a class and its
options.
"""

from __future__ import annotations

import copy
import enum
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest

from ctrlmgr import App, Column, Kind, Meta, Metadata, Model, Scale, Status, definition_of
from ctrlmgr.errors import Invalid
from ctrlmgr.framework.class_schema import schema_of
from ctrlmgr.framework.derived_definition import contradiction
from ctrlmgr.testing import Harness


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Place:
    room: str
    shelf: int = 1


class Port(Model):
    name: str
    number: Annotated[int, Meta(ge=1, le=65535)]
    target: int | str | None = None


class ToySpec(Model):
    """The `spec` of objects of the kind Toy."""

    label: Annotated[str, Meta(min_length=1, max_length=5, pattern="^[a-z]+$", description="The name of a toy.")]
    weight: Annotated[float, Meta(gt=0)] = 1.5
    color: Color = Color.RED
    mood: Literal["gay", "sad"] = "gay"
    is_new: bool = True
    tags: set[str] = set()
    ports: Annotated[
        list[Port],
        Meta(extra_json_schema={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}),
    ] = []
    labels: dict[str, str] = {}
    place: Place | None = None
    anything: Any = None
    blob: bytes = b""


class ToyStatus(Status):
    size: int = 4


class Toy(
    Kind,
    api_version="toys.example.com/v1alpha1",
    plural="toyz",
    scope="Cluster",
    short_names=["ty"],
    categories=["all"],
    columns=[Column("Weight", ".spec.weight"), Column("Label", ".spec.label", priority=1)],
    scale=Scale(".spec.size", ".status.size", ".status.selector"),
):
    """A toy."""

    spec: ToySpec
    status: ToyStatus = ToyStatus()


TEXTS = {"type": "object", "additionalProperties": {"type": "string"}}
EXPECTED: dict[str, Any] = {
    "label": {
        "type": "string",
        "minLength": 1,
        "maxLength": 5,
        "pattern": "^[a-z]+$",
        "description": "The name of a toy.",
    },
    "weight": {"type": "number", "minimum": 0, "exclusiveMinimum": True, "default": 1.5},
    "color": {"type": "string", "enum": ["blue", "red"], "default": "red"},
    "mood": {"type": "string", "enum": ["gay", "sad"], "default": "gay"},
    "isNew": {"type": "boolean", "default": True},
    "tags": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
    "labels": TEXTS,
    "anything": {"x-kubernetes-preserve-unknown-fields": True},
    "blob": {"type": "string", "format": "byte"},
    "place": {
        "type": "object",
        "properties": {"room": {"type": "string"}, "shelf": {"type": "integer", "format": "int64", "default": 1}},
        "required": ["room"],
    },
}


@pytest.mark.parametrize("name", EXPECTED)
def test_each_type_has_a_schema(name: str) -> None:
    assert schema_of(Toy)["properties"]["spec"]["properties"][name] == EXPECTED[name]


def test_lists_keep_their_keys_and_quantities_can_be_strings() -> None:
    ports = schema_of(Toy)["properties"]["spec"]["properties"]["ports"]
    assert (ports["x-kubernetes-list-type"], ports["x-kubernetes-list-map-keys"]) == ("map", ["name"])
    assert ports["items"]["properties"]["target"]["x-kubernetes-int-or-string"] is True
    assert ports["items"]["required"] == ["name", "number"]


def test_a_definition_contains_all_declarations_of_the_class() -> None:
    definition = definition_of(Toy)
    assert definition["metadata"] == {"name": "toyz.toys.example.com"}
    spec = definition["spec"]
    assert spec["scope"] == "Cluster"
    assert spec["names"] == {
        "plural": "toyz",
        "singular": "toy",
        "kind": "Toy",
        "listKind": "ToyList",
        "shortNames": ["ty"],
        "categories": ["all"],
    }
    (version,) = spec["versions"]
    assert version["subresources"]["scale"]["labelSelectorPath"] == ".status.selector"
    assert version["subresources"]["status"] == {}
    assert [(each["name"], each["type"]) for each in version["additionalPrinterColumns"]] == [
        ("Weight", "number"),
        ("Label", "string"),
        ("Age", "date"),
    ]
    assert "default" not in version["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]["size"]


def test_the_server_accepts_and_enforces_the_definition() -> None:
    harness = Harness(App("toys"), kinds=[Toy])
    made = harness.create(Toy(metadata=Metadata(name="a"), spec=ToySpec(label="bear", ports=[Port("http", 80)])))
    assert (made.spec.weight, made.spec.color, made.spec.mood) == (1.5, Color.RED, "gay")
    assert made.metadata.namespace == ""
    with pytest.raises(Invalid, match=r"spec\.label: Invalid value"):
        harness.create(Toy(metadata=Metadata(name="b"), spec=ToySpec(label="BEAR")))


class Node(Model):
    children: "list[Node]" = []  # noqa: UP037  # of itself


class Tree(Kind, api_version="toys.example.com/v1"):
    spec: Node


class Either(Kind, api_version="toys.example.com/v1"):
    spec: int | list[str]


class Pair(Kind, api_version="toys.example.com/v1"):
    spec: tuple[int, str]


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (Tree, r"Tree.spec.children\[\]: Node contains itself"),
        (Either, "Either.spec: a field has one type"),
        (Pair, "Pair.spec: a definition cannot express Tuple; use str"),
    ],
)
def test_an_unsupported_type_is_refused_by_its_path(kind: type[Kind], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        definition_of(kind)


@pytest.mark.parametrize(
    ("api_version", "name"), [("example.com/one", "Toy"), ("Example.com/v1", "Toy"), ("v1", "toy")]
)
def test_invalid_names_are_refused(api_version: str, name: str) -> None:
    with pytest.raises(TypeError, match=r"write a (?:name|version) such as"):

        class Wrong(Kind, api_version=api_version, kind=name):
            spec: dict[str, str]


def test_kinds_of_kubernetes_have_no_generated_definition() -> None:
    class ConfigMap(Kind, api_version="v1"):
        data: dict[str, str]

    with pytest.raises(TypeError, match="v1/ConfigMap is defined elsewhere"):
        definition_of(ConfigMap)


def changed(path: list[Any], value: Any) -> dict[str, Any]:
    stored = copy.deepcopy(definition_of(Toy))
    inner: Any = stored["spec"]
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    return stored


A_STRUCT = {"type": "object", "properties": {"a": {"type": "string"}}}
A_MAP = {"type": "object", "additionalProperties": {"type": "string"}}
PROPERTIES = ["versions", 0, "schema", "openAPIV3Schema", "properties", "spec", "properties"]


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (["scope"], "Namespaced", "its scope is Namespaced, not Cluster"),
        (["names", "kind"], "Game", "its kind is Game, not Toy"),
        (["versions", 0, "name"], "v1", "it has v1 and no version v1alpha1"),
        ([*PROPERTIES, "weight", "type"], "string", ".spec.weight is of type string, not number"),
        ([*PROPERTIES, "labels", "additionalProperties", "type"], "integer", ".spec.labels{} is of type integer"),
        ([*PROPERTIES, "tags", "items", "type"], "integer", ".spec.tags[] is of type integer"),
        ([*PROPERTIES, "labels"], A_STRUCT, ".spec.labels has fields of its own (a), and is no map"),
        (PROPERTIES[:-1], A_MAP, ".spec is a map, and has no fields of its own ("),
        ([*PROPERTIES, "more"], {"type": "string"}, None),
        ([*PROPERTIES, "label"], {"type": "string"}, None),
    ],
)
def test_contradictions_are_distinguished_from_differences(path: list[Any], value: Any, message: str | None) -> None:
    found = contradiction(changed(path, value), definition_of(Toy))
    assert found is None if message is None else found is not None and message in found

"""Tests of OpenAPI documents: they are complete, have Kubernetes' structure, and contain the parts
that kubectl uses.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from ctrlmgr.engine.kind_registry import Kinds
from ctrlmgr.errors import NotAcceptable
from ctrlmgr.kinds.builtin import builtin_kinds
from ctrlmgr.schema import published_schema
from ctrlmgr.server.describe.openapi import OpenAPI
from ctrlmgr.server.describe.openapi.descriptions import _words
from tests.controllers.customresourcedefinitions.defined import definition, established, version
from tests.server.describe import gnostic_reader

JSON = "application/json"
OLD_PROTOBUF = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
METHODS = {"get", "put", "post", "delete", "options", "head", "patch"}

KINDS = builtin_kinds()
SECTIONS = sorted({f"{'apis' if kind.gvk.group else 'api'}/{kind.gvk.api_version}" for kind in KINDS})


@pytest.fixture(scope="module")
def openapi() -> OpenAPI:
    return OpenAPI(KINDS)


def ask(openapi: OpenAPI, path: str, accept: str = JSON) -> Any:
    document = openapi.answer(path, {}, accept)
    assert document is not None
    return json.loads(document.body)


def operations(document: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    for path, item in document["paths"].items():
        yield from ((path, method, each) for method, each in item.items() if method in METHODS)


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for each in value.values():
            yield from references(each)
    elif isinstance(value, list):
        for each in value:
            yield from references(each)


def without_words(value: Any) -> Any:
    """Return a schema without descriptions, which this project writes itself."""
    if isinstance(value, dict):
        return {
            key: without_words(each)
            for key, each in value.items()
            if not (key == "description" and isinstance(each, str))
        }
    return [without_words(each) for each in value] if isinstance(value, list) else value


def test_the_index_names_every_document_by_its_digest(openapi: OpenAPI) -> None:
    paths = ask(openapi, "/openapi/v3")["paths"]
    groups = {f"apis/{kind.gvk.group}" for kind in KINDS if kind.gvk.group}
    assert set(paths) == {*SECTIONS, *groups, "api", "apis", "version"}
    for name, entry in paths.items():
        path, _, digest = entry["serverRelativeURL"].partition("?hash=")
        assert path == f"/openapi/v3/{name}"
        document = openapi.answer(path, {"hash": [digest]}, JSON)
        assert document is not None
        assert (document.digest, document.immutable, document.content_type) == (digest, True, JSON)


@pytest.mark.parametrize("query", [{}, {"hash": ["0123"]}, {"hash": [""]}])
def test_a_document_without_a_digest_in_its_url_can_change(openapi: OpenAPI, query: dict[str, list[str]]) -> None:
    document = openapi.answer("/openapi/v3/api/v1", query, JSON)
    assert document is not None
    assert not document.immutable


@pytest.mark.parametrize("name", [*SECTIONS, "api", "apis", "apis/apps", "version"])
def test_a_document_refers_to_nothing_outside(openapi: OpenAPI, name: str) -> None:
    document = ask(openapi, f"/openapi/v3/{name}")
    schemas = {f"#/components/schemas/{each}" for each in document["components"]["schemas"]}
    assert set(references(document)) <= schemas
    assert document["openapi"] == "3.0.0"


def test_the_documents_together_contain_every_served_path(openapi: OpenAPI) -> None:
    index = ask(openapi, "/openapi/v3")["paths"]
    found = [path for name in index for path in ask(openapi, f"/openapi/v3/{name}")["paths"]]
    elsewhere = {"/.well-known/openid-configuration/", "/openid/v1/jwks/"}
    assert sorted(found) == sorted(set(published_schema.openapi()["paths"]) - elsewhere)
    assert sorted(found) == sorted(ask(openapi, "/openapi/v2")["paths"])


@pytest.mark.parametrize("kind", [kind for kind in KINDS if "patch" in kind.verbs], ids=str)
def test_kubectl_detects_server_side_field_validation(openapi: OpenAPI, kind: Any) -> None:
    """kubectl searches for a PATCH operation of the kind with this parameter; without it, kubectl validates manifests
    by itself or not at all.
    """
    section = f"{'apis' if kind.gvk.group else 'api'}/{kind.gvk.api_version}"
    group, version, name = kind.gvk
    patches = [each for _, method, each in operations(ask(openapi, f"/openapi/v3/{section}")) if method == "patch"]
    wanted = {"group": group, "version": version, "kind": name}
    mine = [each for each in patches if each["x-kubernetes-group-version-kind"] == wanted]
    assert mine
    assert all("fieldValidation" in {parameter["name"] for parameter in each["parameters"]} for each in mine)


@pytest.mark.parametrize("kind", list(KINDS), ids=str)
def test_a_kind_is_found_by_its_name_and_described(openapi: OpenAPI, kind: Any) -> None:
    """`kubectl explain` looks up the schema of a kind in this way."""
    section = f"{'apis' if kind.gvk.group else 'api'}/{kind.gvk.api_version}"
    schema = ask(openapi, f"/openapi/v3/{section}")["components"]["schemas"][kind.definition]
    group, version, name = kind.gvk
    assert {"group": group, "version": version, "kind": name} in schema["x-kubernetes-group-version-kind"]
    assert schema["description"].startswith(f"{name} of API version {kind.gvk.api_version}")
    assert schema["properties"]["kind"]["description"]


def test_schemas_equal_the_kinds_schemas(openapi: OpenAPI) -> None:
    schemas = ask(openapi, "/openapi/v3/api/v1")["components"]["schemas"]
    port = schemas["io.k8s.api.core.v1.ServiceSpec"]["properties"]["ports"]
    assert port["x-kubernetes-patch-merge-key"] == "port"
    assert port["items"] == {"$ref": "#/components/schemas/io.k8s.api.core.v1.ServicePort"}
    quantity = schemas["io.k8s.apimachinery.pkg.api.resource.Quantity"]
    assert quantity == {"oneOf": [{"type": "string"}, {"type": "number"}]}
    either = schemas["io.k8s.apimachinery.pkg.util.intstr.IntOrString"]
    assert either == {"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]}


def test_a_reference_with_siblings_becomes_an_all_of(openapi: OpenAPI) -> None:
    schemas = ask(openapi, "/openapi/v3/apis/apps/v1")["components"]["schemas"]
    strategy = schemas["io.k8s.api.apps.v1.DeploymentSpec"]["properties"]["strategy"]
    assert strategy == {
        "allOf": [{"$ref": "#/components/schemas/io.k8s.api.apps.v1.DeploymentStrategy"}],
        "description": "How new pods replace old ones.",
        "x-kubernetes-patch-strategy": "retainKeys",
    }


def test_descriptions_exist_for_declared_fields_in_one_line_each(structured: Mapping[str, Any]) -> None:
    for name, words in _words().items():
        assert words.keys() <= structured[f"io.k8s.api.{name}"]["properties"].keys(), name
        for field, text in words.items():
            assert text.endswith("."), (name, field)
            assert "\n" not in text, (name, field)


@pytest.mark.parametrize(
    ("section", "kind", "below"),
    [
        ("api/v1", "core.v1.Pod", ("PodSpec", "PodStatus", "Container")),
        ("api/v1", "core.v1.Service", ("ServiceSpec", "ServiceStatus", "ServicePort")),
        ("api/v1", "core.v1.ConfigMap", ()),
        ("api/v1", "core.v1.Secret", ()),
        ("api/v1", "core.v1.ServiceAccount", ()),
        ("api/v1", "core.v1.Namespace", ("NamespaceSpec", "NamespaceStatus")),
        ("apis/apps/v1", "apps.v1.Deployment", ("DeploymentSpec", "DeploymentStatus", "DeploymentStrategy")),
        ("apis/batch/v1", "batch.v1.Job", ("JobSpec", "JobStatus")),
        ("apis/networking.k8s.io/v1", "networking.v1.Ingress", ("IngressSpec", "IngressStatus", "IngressRule")),
        ("apis/rbac.authorization.k8s.io/v1", "rbac.v1.Role", ("PolicyRule",)),
        ("apis/rbac.authorization.k8s.io/v1", "rbac.v1.ClusterRole", ("AggregationRule",)),
        ("apis/rbac.authorization.k8s.io/v1", "rbac.v1.RoleBinding", ("RoleRef", "Subject")),
        ("apis/rbac.authorization.k8s.io/v1", "rbac.v1.ClusterRoleBinding", ()),
    ],
)
def test_the_first_two_levels_of_common_kinds_have_descriptions(
    openapi: OpenAPI, section: str, kind: str, below: tuple[str, ...]
) -> None:
    schemas = ask(openapi, f"/openapi/v3/{section}")["components"]["schemas"]
    assert "https://kubernetes.io/docs/reference" in schemas[f"io.k8s.api.{kind}"]["description"]
    prefix = kind.rpartition(".")[0]
    for name in (kind, *(f"{prefix}.{each}" for each in below)):
        fields = schemas[f"io.k8s.api.{name}"]["properties"]
        assert [field for field, said in fields.items() if not said.get("description")] == [], name


@pytest.fixture(scope="module")
def structured(openapi: OpenAPI) -> Mapping[str, Any]:
    found: Mapping[str, Any] = ask(openapi, "/openapi/v2")["definitions"]
    return found


def test_an_operation_describes_its_parameters_and_responses(openapi: OpenAPI) -> None:
    path = "/api/v1/namespaces/{namespace}/services"
    item = ask(openapi, "/openapi/v3/api/v1")["paths"][path]
    assert [parameter["name"] for parameter in item["parameters"]] == ["namespace", "pretty"]
    post = item["post"]
    service = {"schema": {"$ref": "#/components/schemas/io.k8s.api.core.v1.Service"}}
    bodies = ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"]
    assert post["requestBody"] == {"content": dict.fromkeys(bodies, service), "required": True}
    assert post["responses"]["201"] == {
        "description": "Created",
        "content": {"application/json": service, "application/yaml": service},
    }
    assert post["responses"]["default"]["content"][JSON]["schema"]["$ref"].endswith(".meta.v1.Status")
    listed = {parameter["name"]: parameter["schema"] for parameter in item["get"]["parameters"]}
    assert listed["limit"] == {"type": "integer", "uniqueItems": True}
    assert listed.keys() >= {"continue", "watch", "allowWatchBookmarks", "sendInitialEvents", "resourceVersionMatch"}
    patch = ask(openapi, "/openapi/v3/api/v1")["paths"][f"{path}/{{name}}"]["patch"]
    assert "application/apply-patch+yaml" in patch["requestBody"]["content"]


def test_every_operation_has_a_unique_id(openapi: OpenAPI) -> None:
    document = ask(openapi, "/openapi/v2")
    names = [each["operationId"] for _, _, each in operations(document)]
    assert len(names) == len(set(names)) > 700
    assert all(
        response["description"] for _, _, each in operations(document) for response in each["responses"].values()
    )


def test_v2_contains_every_published_definition(openapi: OpenAPI) -> None:
    published = {name: json.loads(bytes(each)) for name, each in published_schema.definitions().items()}
    assert without_words(ask(openapi, "/openapi/v2")["definitions"]) == without_words(published)


@pytest.mark.parametrize("accept", [OLD_PROTOBUF, PROTOBUF, f"{OLD_PROTOBUF}, {JSON};q=0.5"])
def test_v2_in_protobuf_equals_json(openapi: OpenAPI, accept: str) -> None:
    document = openapi.answer("/openapi/v2", {}, accept)
    assert document is not None
    assert document.content_type == PROTOBUF
    assert gnostic_reader.read("Document", document.body) == ask(openapi, "/openapi/v2")


def test_unserved_kinds_are_not_described() -> None:
    kinds = builtin_kinds()
    few = Kinds(kinds.definitions)
    for plural in ("configmaps", "namespaces"):
        kind = kinds.find("", "v1", plural)
        assert kind is not None
        few.add(kind)
    leases = kinds.find("coordination.k8s.io", "v1", "leases")
    assert leases is not None
    leases.verbs = frozenset({"get", "list"})
    few.add(leases)
    document = ask(OpenAPI(few), "/openapi/v2")
    assert "/api/v1/namespaces/{namespace}/services" not in document["paths"]
    assert "/apis/apps/" not in document["paths"]
    assert {"/api/", "/apis/", "/version/", "/api/v1/", "/apis/coordination.k8s.io/"} <= set(document["paths"])
    assert {"/api/v1/namespaces/{name}/finalize", "/api/v1/watch/configmaps"} <= set(document["paths"])
    lease = document["paths"]["/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}"]
    assert set(lease) == {"get", "parameters"}
    assert "/apis/coordination.k8s.io/v1/watch/leases" not in document["paths"]


@pytest.mark.parametrize(
    "path", ["/openapi", "/openapi/v1", "/openapi/v3/api/v2", "/openapi/v3/apis/nope", "/openapi/v33"]
)
def test_an_unknown_path_has_no_document(openapi: OpenAPI, path: str) -> None:
    assert openapi.answer(path, {}, JSON) is None


@pytest.mark.parametrize(
    ("path", "accept"),
    [
        ("/openapi/v2", "application/yaml"),
        ("/openapi/v3", "text/html"),
        ("/openapi/v3/api/v1", "application/com.github.proto-openapi.spec.v3.v1.0+protobuf"),
    ],
)
def test_unsupported_formats_are_refused(openapi: OpenAPI, path: str, accept: str) -> None:
    with pytest.raises(NotAcceptable):
        openapi.answer(path, {}, accept)


def test_documents_are_built_once(openapi: OpenAPI) -> None:
    one, other = (openapi.answer("/openapi/v3/api/v1/", {}, "") for _ in range(2))
    assert one is not None
    assert other is not None
    assert one.body is other.body
    assert one.gzipped is other.gzipped is not None


EVERY_KEYWORD: Mapping[str, Any] = {
    "type": "object",
    "title": "widget",
    "description": "what it is",
    "externalDocs": {"description": "more of it", "url": "https://docs.example"},
    "properties": {
        "text": {
            "type": "string",
            "title": "a text",
            "pattern": "^[a-z]+$",
            "format": "hostname",
            "minLength": 1,
            "maxLength": 9,
            "enum": ["a", "b"],
            "example": "a",
        },
        "number": {
            "type": "number",
            "multipleOf": 0.5,
            "minimum": -2.5,
            "exclusiveMinimum": True,
            "maximum": 4,
            "exclusiveMaximum": True,
        },
        "count": {"type": "integer", "format": "int64", "minimum": 1},
        "list": {
            "type": "array",
            "minItems": 1,
            "maxItems": 3,
            "uniqueItems": True,
            "items": {"type": "string", "maxLength": 5},
            "x-kubernetes-list-type": "set",
        },
        "map": {"type": "object", "minProperties": 1, "maxProperties": 3, "additionalProperties": {"type": "integer"}},
        "any": {"type": "object", "additionalProperties": True},
        "none": {"type": "object", "additionalProperties": False},
        "both": {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
        "checked": {"type": "string", "x-kubernetes-validations": [{"rule": "self != ''"}], "not": {"enum": ["c"]}},
    },
    "required": ["count"],
}


@pytest.fixture(scope="module")
def customized() -> OpenAPI:
    kinds = builtin_kinds()
    kinds.refresh([established(definition(versions=[version(schema={"openAPIV3Schema": EVERY_KEYWORD})]))])
    return OpenAPI(kinds)


def test_a_custom_kind_with_every_keyword_is_encoded_in_protobuf(customized: OpenAPI) -> None:
    document = customized.answer("/openapi/v2", {}, PROTOBUF)
    assert document is not None
    read = gnostic_reader.read("Document", document.body)
    assert read == ask(customized, "/openapi/v2")
    widget = read["definitions"]["com.example.v1.Widget"]
    unsaid = {"both": ("anyOf",), "checked": ("not",)}
    for name, keywords in EVERY_KEYWORD["properties"].items():
        wanted = {key: value for key, value in keywords.items() if key not in unsaid.get(name, ())}
        assert widget["properties"][name] == wanted, name


def test_parameters_shared_by_all_operations_belong_to_the_path(customized: OpenAPI) -> None:
    paths = ask(customized, "/openapi/v3/apis/example.com/v1")["paths"]
    everywhere = paths["/apis/example.com/v1/widgets"]
    pods = ask(customized, "/openapi/v3/api/v1")["paths"]["/api/v1/pods"]
    assert [each["name"] for each in everywhere["parameters"]] == [each["name"] for each in pods["parameters"]]
    assert "parameters" not in everywhere["get"]
    within = paths["/apis/example.com/v1/namespaces/{namespace}/widgets"]
    assert [each["name"] for each in within["parameters"]] == ["namespace", "pretty"]

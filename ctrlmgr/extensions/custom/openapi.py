"""Creates the part of the OpenAPI documents about a custom kind: its definitions and paths, in the form of version 2.

Guarantees: the document contains the unchanged schema of a CustomResourceDefinition and Kubernetes' additions: kind,
apiVersion, metadata, and the schemas of embedded objects and int-or-string. The document in version 2 omits constructs
that version 2 cannot express, or that old versions of kubectl cannot read.

Source: apiextensions-apiserver `pkg/controller/openapi/builder`, `pkg/controller/openapi/v2/conversion.go` and
`pkg/apiserver/schema/unfold.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

Node = dict[str, Any]

_META = "io.k8s.apimachinery.pkg.apis.meta.v1"
_REFERENCE = "#/definitions/"
_STATUS, _PATCH, _SCALE = f"{_META}.Status", f"{_META}.Patch", "io.k8s.api.autoscaling.v1.Scale"

TYPE_META: Mapping[str, Node] = {
    "apiVersion": {
        "description": "APIVersion defines the group and version of this representation of the object.",
        "type": "string",
    },
    "kind": {
        "description": "Kind is the name of the type of the object, which clients use to decode it.",
        "type": "string",
    },
}
_OBJECT_META = "Standard object's metadata: its name, labels and annotations, owners and finalizers."
_LIST_META = "Standard list metadata: the resource version, and the token for the next page."
_JSON_OR_YAML = ["application/json", "application/yaml"]
_PATCHES = ["application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml"]
_COMBINATORS = ("allOf", "anyOf", "oneOf", "not")
_INTEGER_OR_STRING = [{"type": "integer"}, {"type": "string"}]
_UNTOLD = ("x-kubernetes-group-version-kind", "$schema", "id", "$ref", "definitions", "dependencies")

_LISTING = (
    ("allowWatchBookmarks", "boolean"),
    ("continue", "string"),
    ("fieldSelector", "string"),
    ("labelSelector", "string"),
    ("limit", "integer"),
    ("resourceVersion", "string"),
    ("resourceVersionMatch", "string"),
    ("sendInitialEvents", "boolean"),
    ("shardSelector", "string"),
    ("timeoutSeconds", "integer"),
    ("watch", "boolean"),
)
_WRITING = (("dryRun", "string"), ("fieldManager", "string"), ("fieldValidation", "string"))
_PARAMETERS: Mapping[str, Sequence[tuple[str, str]]] = {
    "list": _LISTING,
    "deletecollection": _LISTING,
    "get": (("resourceVersion", "string"),),
    "post": _WRITING,
    "put": _WRITING,
    "patch": (*_WRITING, ("force", "boolean")),
    "delete": (
        ("dryRun", "string"),
        ("gracePeriodSeconds", "integer"),
        ("ignoreStoreReadErrorWithClusterBreakingPotential", "boolean"),
        ("orphanDependents", "boolean"),
        ("propagationPolicy", "string"),
    ),
}
"""The query parameters, by `x-kubernetes-action`."""

_TOLD = {
    "allowWatchBookmarks": "Whether a watch receives BOOKMARK events with its current resource version.",
    "continue": "The token for the next page of a list, from the metadata of the previous page.",
    "dryRun": "With All, the request is validated and answered, but nothing is stored.",
    "fieldManager": "The name of the manager that owns the fields set by the request.",
    "fieldSelector": "Restricts the objects to those whose fields match this selector.",
    "fieldValidation": "How unknown and duplicate fields are handled: Ignore, Warn or Strict.",
    "force": "Whether an apply takes ownership of fields that other managers have applied.",
    "gracePeriodSeconds": "The grace period in seconds before the object is removed; 0 removes it immediately.",
    "ignoreStoreReadErrorWithClusterBreakingPotential": "Whether to delete an object that cannot be read from the log.",
    "labelSelector": "Restricts the objects to those whose labels match this selector.",
    "limit": "The maximum number of objects in a page of a list; 0 for all objects.",
    "orphanDependents": "Whether dependents are kept; deprecated in favour of propagationPolicy.",
    "propagationPolicy": "How the object's dependents are deleted: Orphan, Background or Foreground.",
    "resourceVersion": "The resource version at which the request reads, or the minimum one.",
    "resourceVersionMatch": "How the request applies resourceVersion: as Exact or as NotOlderThan.",
    "sendInitialEvents": "Whether a watch starts with an event for every existing object.",
    "shardSelector": "Restricts the objects to one shard of the collection, selected by a hash.",
    "timeoutSeconds": "The maximum duration of the call in seconds, whether or not anything changes.",
    "watch": "Whether to watch for changes of the objects instead of listing them.",
}


class Described(NamedTuple):
    """The properties of one version of a custom kind that OpenAPI needs."""

    group: str
    version: str
    kind: str
    list_kind: str
    plural: str
    namespaced: bool
    schema: Callable[[], Mapping[str, Any] | None]
    """A function that returns the version's `openAPIV3Schema`; None if the version has no schema."""
    subresources: Sequence[str]
    """The subresources of the version: `status`, `scale`, both or none."""
    selectable: Sequence[str] = ()
    """The paths of the selectable fields, without the leading dot."""

    @property
    def definition(self) -> str:
        """The name of the kind's OpenAPI definition, such as `com.example.v1.Widget`."""
        return definition_name(self.group, self.version, self.kind)

    @property
    def list_definition(self) -> str:
        """The name of the OpenAPI definition of the kind's list."""
        return definition_name(self.group, self.version, self.list_kind)

    def definitions(self, *, v2: bool) -> Mapping[str, Node]:
        """Return the kind's OpenAPI definitions by name, in the form of version 2.

        If `v2` is set, the schema omits constructs that version 2 cannot express.
        """
        return {self.definition: self._object(v2=v2), self.list_definition: self._list()}

    def _object(self, *, v2: bool) -> Node:
        schema = self.schema()
        if schema is None or (v2 and schema.get("x-kubernetes-preserve-unknown-fields")):
            node: Node = {"type": "object"}
        else:
            node = schema_node(schema, v2=v2)
            node["properties"] = {**node.get("properties", {}), **TYPE_META, "metadata": _object_meta()}
        return {**node, **self._marks(self.kind)}

    def _list(self) -> Node:
        items = {
            "description": f"The {self.plural} in the list, in the order of their namespaces and names.",
            "items": {"$ref": _REFERENCE + self.definition},
            "type": "array",
        }
        metadata = {
            "$ref": f"{_REFERENCE}{_META}.ListMeta",
            "description": _LIST_META,
        }
        return {
            "description": f"{self.list_kind} is a list of {self.kind}",
            "type": "object",
            "required": ["items"],
            "properties": {**TYPE_META, "items": items, "metadata": metadata},
            **self._marks(self.list_kind),
        }

    def _marks(self, kind: str) -> Node:
        marks: Node = {"x-kubernetes-group-version-kind": [{**self._gvk, "kind": kind}]}
        if self.selectable:
            marks["x-kubernetes-selectable-fields"] = [{"fieldPath": path} for path in self.selectable]
        return marks

    @property
    def _gvk(self) -> dict[str, str]:
        return {"group": self.group, "kind": self.kind, "version": self.version}

    def paths(self) -> Mapping[str, Node]:
        """Return the OpenAPI path items of the kind, by path."""
        root = f"/apis/{self.group}/{self.version}"
        collection = f"{root}/{self.plural}"
        own, listed = _REFERENCE + self.definition, _REFERENCE + self.list_definition
        items: dict[str, Node] = {}
        if self.namespaced:
            everywhere = self._operation("list", "list", listed, suffix="ForAllNamespaces", namespaced=False)
            items[collection] = _sharing({"get": everywhere, "parameters": [*self._common()]})
            collection = f"{root}/namespaces/{{namespace}}/{self.plural}"
        items[collection] = {
            "delete": self._operation("deletecollection", "deletecollection", _REFERENCE + _STATUS),
            "get": self._operation("list", "list", listed),
            "post": self._operation("post", "create", own, body=own),
            "parameters": [*self._common()] if not self.namespaced else [_in_path("namespace"), *self._common()],
        }
        items[f"{collection}/{{name}}"] = self._item(own, "", delete=True)
        for part in self.subresources:
            answer = _REFERENCE + _SCALE if part == "scale" else own
            items[f"{collection}/{{name}}/{part}"] = self._item(answer, part)
        return items

    def _item(self, answer: str, part: str, *, delete: bool = False) -> Node:
        suffix = part.title()
        item: Node = {
            "get": self._operation("get", "read", answer, suffix=suffix, part=part),
            "patch": self._operation("patch", "patch", answer, body=_REFERENCE + _PATCH, suffix=suffix, part=part),
            "put": self._operation("put", "replace", answer, body=answer, suffix=suffix, part=part),
            "parameters": [
                _in_path("name"),
                *([_in_path("namespace")] if self.namespaced else []),
                *self._common(),
            ],
        }
        if delete:
            item["delete"] = self._operation("delete", "delete", _REFERENCE + _STATUS)
        return item

    def _common(self) -> Iterator[Node]:
        yield {
            "description": "Whether the response is indented; by default it is for curl, wget and browsers.",
            **_query("pretty", "string"),
        }

    def _operation(
        self,
        action: str,
        verb: str,
        answer: str,
        *,
        body: str = "",
        suffix: str = "",
        part: str = "",
        namespaced: bool | None = None,
    ) -> Node:
        """Return one OpenAPI operation; its ID is the same as in Kubernetes (`createExampleComV1NamespacedWidget`)."""
        scope = "Namespaced" if (self.namespaced if namespaced is None else namespaced) else ""
        place = "".join(word.title() for word in self.group.split(".")) + self.version[:1].upper() + self.version[1:]
        verb_and_more = f"delete{place}Collection" if verb == "deletecollection" else f"{verb}{place}"
        words = self.group.split(".")
        parameters = [{"description": _TOLD[name], **_query(name, type_)} for name, type_ in _PARAMETERS[action]]
        if body:
            parameters.append({"in": "body", "name": "body", "required": True, "schema": {"$ref": body}})
        elif action == "delete":
            options = {"$ref": f"{_REFERENCE}{_META}.DeleteOptions"}
            parameters.append({"in": "body", "name": "body", "schema": options})
        return {
            "description": _sentence(verb, self.kind, part),
            "consumes": _PATCHES if action == "patch" else _JSON_OR_YAML,
            "operationId": f"{verb_and_more}{scope}{self.kind}{suffix}",
            "parameters": parameters,
            "produces": _JSON_OR_YAML,
            "responses": _responses(action, answer),
            "schemes": ["https"],
            "tags": [f"{words[0]}{''.join(word.title() for word in words[1:])}_{self.version}"],
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": self._gvk,
        }


def definition_name(group: str, version: str, kind: str) -> str:
    """Return the name of a custom kind's OpenAPI definition, such as `com.example.v1.Widget`.

    The name of an OpenAPI definition consists of the reversed group, the version and the kind.
    """
    return f"{'.'.join(reversed(group.split('.')))}.{version}.{kind}"


def schema_node(schema: Mapping[str, Any], *, v2: bool) -> Node:
    """Return the schema in an OpenAPI document for a structural schema."""
    node = {key: value for key, value in schema.items() if value is not None and key not in _UNTOLD}
    if schema.get("x-kubernetes-int-or-string") and not v2:
        _unfold(node)
    if v2:
        _simplify(node)
    for key in ("properties",):
        if key in node:
            node[key] = {name: schema_node(each, v2=v2) for name, each in node[key].items()}
    for key in ("items", "additionalProperties"):
        if isinstance(node.get(key), Mapping):
            node[key] = schema_node(node[key], v2=v2)
    if schema.get("x-kubernetes-embedded-resource") and not (v2 and schema.get("x-kubernetes-preserve-unknown-fields")):
        node["properties"] = {**node.get("properties", {}), **TYPE_META, "metadata": _object_meta()}
        required = node.get("required", ())
        node["required"] = [*required, *(each for each in ("kind", "apiVersion") if each not in required)]
    return node


def _unfold(node: Node) -> None:
    """Add the types of an int-or-string unless the schema already contains them."""
    if "anyOf" not in node:
        node["anyOf"] = _INTEGER_OR_STRING
    elif not _says_int_or_string(node["anyOf"]):
        all_of = node.get("allOf", [])
        if not (all_of and _says_int_or_string(all_of[0].get("anyOf", ()))):
            node["allOf"] = [{"anyOf": _INTEGER_OR_STRING}, *all_of]


def _says_int_or_string(any_of: Iterable[Any]) -> bool:
    return list(any_of)[:2] == _INTEGER_OR_STRING


def _simplify(node: Node) -> None:
    """Remove constructs that OpenAPI version 2 cannot express, or that kubectl cannot read in version 2."""
    for key in (*_COMBINATORS, "default"):
        node.pop(key, None)
    if node.pop("nullable", False):
        for key in ("type", "items", "properties"):
            node.pop(key, None)
    preserves = node.get("x-kubernetes-preserve-unknown-fields")
    if preserves:
        for key in ("items", "properties"):
            node.pop(key, None)
    if (node.get("type") == "array" and "items" not in node) or (preserves and node.get("type") == "object"):
        del node["type"]
    nullable = {name for name, each in node.get("properties", {}).items() if each.get("nullable")}
    if nullable and "required" in node:
        node["required"] = [name for name in node["required"] if name not in nullable]
    values = node.get("additionalProperties")
    if (isinstance(values, Mapping) and values.get("nullable")) or not node.get("required", True):
        node.pop("required", None)


def _object_meta() -> Node:
    return {
        "$ref": f"{_REFERENCE}{_META}.ObjectMeta",
        "description": _OBJECT_META,
    }


def _query(name: str, type_: str) -> Node:
    return {"in": "query", "name": name, "type": type_, "uniqueItems": True}


def _in_path(name: str) -> Node:
    description = "The object's name." if name == "name" else "The object's namespace."
    return {
        "description": description,
        "in": "path",
        "name": name,
        "required": True,
        "type": "string",
        "uniqueItems": True,
    }


def _sharing(item: Node) -> Node:
    """Move the parameters of a path item's only operation to the path item itself.

    If a path item has several operations, its parameters are not changed.
    """
    shared = [*item["parameters"], *item["get"].pop("parameters")]
    return {**item, "parameters": sorted(shared, key=lambda parameter: str(parameter["name"]))}


def _responses(action: str, answer: str) -> Node:
    schema = {"schema": {"$ref": answer}}
    codes = {"200": "OK"}
    if action in ("post", "put"):
        codes["201"] = "Created"
    if action in ("post", "delete"):
        codes["202"] = "Accepted"
    responses: Node = {code: {"description": phrase, **schema} for code, phrase in codes.items()}
    return {**responses, "401": {"description": "Unauthorized"}}


def _sentence(verb: str, kind: str, part: str) -> str:
    of = f" {part} of" if part else ""
    article = "an" if kind[:1].lower() in "aeio" else "a"
    match verb:
        case "patch":
            return f"partially update{of} the specified {kind}"
        case "deletecollection":
            return f"delete collection of {kind}"
        case "list":
            return f"list objects of kind {kind}"
        case "read" | "replace":
            return f"{verb}{of} the specified {kind}"
    return f"{verb} {article} {kind}"

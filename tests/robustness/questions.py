"""Generates requests for the operations in an OpenAPI document: valid and invalid requests.

The requests use few names, so that many requests concern an existing object. Updates change the object that the
generator received last.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

import yaml

from tests.robustness.hostile.value_generator import STRANGE, Schema, ValueGenerator
from tests.robustness.operations import Operation

NAMESPACES = ("default", "default", "default", "fuzz-a", "fuzz-b", "kube-system", "none", "A_b", "..")
_REMEMBERED = 20
_PREFIX = "#/components/schemas/"

_QUERY: Mapping[str, tuple[str, ...]] = {
    "pretty": ("true", "0"),
    "dryRun": ("All", "All", "all", ""),
    "fieldManager": ("tests", "", "x" * 129, "é", "\n"),
    "fieldValidation": ("Strict", "Warn", "Ignore", "strict"),
    "force": ("true", "false", "x"),
    "labelSelector": ("a=b", "a in (b,c)", "!a", "a>1", "a in (", ",", "é", "\0", "a" * 64),
    "fieldSelector": ("metadata.name=a", "metadata.namespace!=b", "spec.x=1", "status.phase=Running", "=", "a,b"),
    "limit": ("1", "2", "500", "0", "-1", "x", "99999999999999999999"),
    "continue": ("x", "e30", "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiJhXHUwMDAwIn0"),
    "resourceVersion": ("0", "0", "1", "5", "x", "-1", ""),
    "resourceVersionMatch": ("Exact", "NotOlderThan", "x", ""),
    "sendInitialEvents": ("true", "false", "x"),
    "timeoutSeconds": ("1", "0", "x"),
    "gracePeriodSeconds": ("0", "30", "-1", "x", "99999999999999999999"),
    "orphanDependents": ("true", "false", "x"),
    "propagationPolicy": ("Orphan", "Background", "Foreground", "x"),
    "path": ("/", "..", "a b"),
    "container": ("a", "", ".."),
}
_SUITABLE = 0.85
"""Query strings that contain no invalid parts, because they are empty."""


class Question(NamedTuple):
    """A request."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    collection: str
    """The key under which the generator stores an object."""


class Questions:
    """Generates requests; the same seed and the same responses give the same requests."""

    def __init__(self, definitions: Mapping[str, Schema], choice: random.Random) -> None:
        """Create a generator that makes bodies for `definitions`, and draws random values from `choice`."""
        self._values = ValueGenerator(definitions, choice)
        self._choice = choice
        self._seen: dict[str, list[Any]] = {}

    def remember(self, collection: str, fields: Any) -> None:
        """Store an existing object for later requests."""
        seen = self._seen.setdefault(collection, [])
        seen.append(fields)
        del seen[:-_REMEMBERED]

    def about(self, operation: Operation) -> Question:
        """Generate a request."""
        known = self._known(operation)
        name = known["metadata"]["name"] if known else self._values.name()
        path = self._path(operation, known, name if self._choice.random() < 0.97 else self._values.name())
        media_type = self._media_type(operation)
        query = self._query(operation, media_type)
        body = self._body(operation, media_type, known, name) if media_type else b""
        headers = {"content-type": media_type} if media_type else {}
        return Question(operation.method, f"{path}{query}", headers, body, operation.collection)

    def _known(self, operation: Operation) -> Any:
        seen = self._seen.get(operation.collection)
        return self._choice.choice(seen) if seen and self._choice.random() < 0.9 else None

    def _path(self, operation: Operation, known: Any, name: str) -> str:
        metadata = known["metadata"] if known else {}
        values = {
            "namespace": metadata.get("namespace") or self._choice.choice(NAMESPACES),
            "name": name or "a",
            "path": self._choice.choice(STRANGE) or "a",
        }
        path = operation.path
        for name, value in values.items():
            path = path.replace(f"{{{name}}}", quote(value.encode("utf-8", "replace"), safe=""))
        return path

    def _query(self, operation: Operation, media_type: str) -> str:
        pairs = {"fieldManager": "tests"} if media_type.startswith("application/apply-patch") else {}
        if self._choice.random() > _SUITABLE:
            for name in operation.parameters:
                if name != "watch" and self._choice.random() < 0.2:
                    pairs[name] = self._choice.choice(_QUERY.get(name, STRANGE))
        if operation.is_watch or (operation.action == "list" and self._choice.random() < 0.01):
            pairs |= {
                "watch": "true",
                "timeoutSeconds": "1",
                "resourceVersion": self._choice.choice(("", "0", "1", "x")),
            }
        return f"?{urlencode(pairs, errors='replace')}" if pairs else ""

    def _media_type(self, operation: Operation) -> str:
        if not operation.body or (operation.method == "DELETE" and self._choice.random() < _SUITABLE):
            return ""
        media_type = self._choice.choice(operation.media_types)
        return "application/json" if media_type.endswith("protobuf") and self._choice.random() < 0.9 else media_type

    def _body(self, operation: Operation, media_type: str, known: Any, name: str) -> bytes:
        if media_type.endswith("protobuf"):
            return self._noise()
        if self._choice.random() < 0.02:
            fields: Any = self._choice.choice(
                (None, [], "x", 1, {}, [{}], {"metadata": None}, {"metadata": {"labels": []}})
            )
        elif operation.method == "PATCH":
            fields = self._patch(operation, media_type, known, name)
        else:
            fields = self._whole(operation, known, name)
        return _encoded(fields, media_type)

    def _noise(self) -> bytes:
        return b"k8s\0" + self._choice.randbytes(self._choice.choice((0, 1, 10, 200)))

    def _whole(self, operation: Operation, known: Any, name: str) -> Any:
        made = self._values.of({"$ref": _PREFIX + operation.body})
        if operation.method == "PUT" and known and self._choice.random() < 0.8:
            made = _merged(known, made, self._choice)
        kind = operation.kind
        if operation.method != "DELETE" and self._choice.random() < 0.97 and isinstance(made, dict):
            definition = operation.body.rpartition(".")[2]
            if definition == kind.get("kind"):
                group, version = kind["group"], kind["version"]
                made |= {"kind": definition, "apiVersion": f"{group}/{version}" if group else version}
            else:
                made = {key: value for key, value in made.items() if key not in ("kind", "apiVersion")}
            self._name(made, name, known if operation.method == "PUT" else None)
        return made

    def _name(self, made: dict[str, Any], name: str, known: Any) -> None:
        if self._choice.random() < 0.03:
            return
        metadata = made.get("metadata")
        kept = metadata if isinstance(metadata, dict) and self._choice.random() < 0.3 else {}
        plain = {
            key: kept[key] for key in kept if key not in ("namespace", "resourceVersion", "deletionTimestamp", "uid")
        }
        made["metadata"] = {**(known["metadata"] if known else {}), **plain, "name": name}

    def _patch(self, operation: Operation, media_type: str, known: Any, name: str) -> Any:
        definition = self._definition(operation)
        made = self._values.of({"$ref": _PREFIX + definition}) if definition else {"a": 1}
        if media_type.startswith("application/json-patch"):
            return [self._step(made, known or made) for _ in range(self._choice.choice((0, 1, 1, 2, 5)))]
        if isinstance(made, dict):
            self._name(made, name, None)
            if media_type.startswith("application/apply-patch") and self._choice.random() < 0.97:
                group, version, kind = (operation.kind[part] for part in ("group", "version", "kind"))
                made |= {"kind": kind, "apiVersion": f"{group}/{version}" if group else version}
            elif self._choice.random() < 0.3:
                self._direct(made)
        return made

    def _definition(self, operation: Operation) -> str:
        name = "." + ".".join(operation.kind.get(part, "") for part in ("version", "kind"))
        found = [each for each in self._values.definitions if each.endswith(name)]
        return found[0] if found else ""

    def _step(self, made: Any, known: Any) -> dict[str, Any]:
        op = self._choice.choice(("add", "remove", "replace", "move", "copy", "test", "x"))
        step = {"op": op, "path": self._pointer(self._choice.choice((made, known)))}
        if self._choice.random() < 0.9:
            step["value"] = self._choice.choice((made, None, 1, "a", [], {}, *_leaves(made)[:5]))
        if self._choice.random() < 0.4:
            step["from"] = self._pointer(known)
        return step

    def _pointer(self, fields: Any) -> str:
        pointer = ""
        while isinstance(fields, dict | list) and fields and self._choice.random() < 0.85:
            part = self._choice.choice(list(fields) if isinstance(fields, dict) else list(range(len(fields))))
            fields = fields[part]
            pointer += "/" + str(part).replace("~", "~0").replace("/", "~1")
        return self._choice.choice((pointer, pointer, pointer, pointer + "/-", pointer + "/0", pointer + "/none", "x"))

    def _direct(self, made: Any) -> None:
        """Insert a directive for strategic merge patches at a random place."""
        place = made
        while self._choice.random() < 0.6:
            inner = [
                each for each in (place.values() if isinstance(place, dict) else place) if isinstance(each, dict | list)
            ]
            if not inner:
                break
            place = self._choice.choice(inner)
        directives: dict[str, Any] = {
            "$patch": self._choice.choice(("delete", "replace", "merge")),
            "$retainKeys": self._choice.choice(([], ["name"], "x", None)),
            "$setElementOrder/" + self._choice.choice(("containers", "ports", "finalizers")): [{"name": "a"}, "a"],
            "$deleteFromPrimitiveList/finalizers": ["a"],
        }
        name = self._choice.choice(list(directives))
        if isinstance(place, dict):
            place[name] = directives[name]
        else:
            place.append({name: directives[name]})


def _merged(known: Any, made: Any, choice: random.Random) -> Any:
    """Return a stored object with several generated fields."""
    merged = copy.deepcopy(known)
    places = [(merged, made)]
    while places:
        to, source = places.pop()
        for key, value in source.items() if isinstance(source, dict) else ():
            if isinstance(to.get(key), dict) and isinstance(value, dict):
                places.append((to[key], value))
            elif choice.random() < 0.15:
                to[key] = value
    return merged


def _leaves(fields: Any) -> list[Any]:
    return list(fields.values()) if isinstance(fields, dict) else fields if isinstance(fields, list) else []


def _encoded(fields: Any, media_type: str) -> bytes:
    text = json.dumps(fields)
    if media_type.endswith("yaml"):  # YAML cannot express all strings of JSON: lone surrogates
        return yaml.safe_dump(json.loads(text.replace("\\ud800", "?")), allow_unicode=True).encode()
    return text.encode()

"""Attacks on computations of the server: selectors, access reviews, expressions, patterns, schemas, lists, large
responses.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote

Body = dict[str, Any]

NAMESPACED = "/api/v1/namespaces/attack"
CONFIGMAPS = f"{NAMESPACED}/configmaps"
THINGS = "/apis/attacked.example.com/v1/namespaces/attack/things"
REVIEWS = "/apis/authorization.k8s.io/v1"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
BINDINGS = f"{POLICIES[: -len('policies')]}policybindings"
PROTOBUF = "application/vnd.kubernetes.protobuf"
JSON = "application/json"

SELECTED = 60_000
"""Maximum number of bytes of a query string."""

STEEP = "(a|b)*a(a|b){%d}$"
"""A regular expression with this number of states for each character."""

_HOWS = {
    "sets": "sets.intersects(object.data.a.split(','), object.data.b.split(','))",
    "distinct": "object.data.a.split(',').distinct().size() >= 0",
    "all": "object.data.a.split(',').all(x, object.data.b.split(',').exists(y, x == y))",
    "find": "object.data.a.findAll('b?a+').size() >= 0",
    "matches": f"object.data.a.matches('{STEEP % 99}')",
}

POLICY: Body = {
    "metadata": {"name": "attacked"},
    "spec": {
        "failurePolicy": "Fail",
        "matchConstraints": {
            "resourceRules": [
                {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"]}
            ]
        },
        "validations": [
            {"expression": f"!has(object.data) || !('how' in object.data) || object.data.how != '{how}' || {rule}"}
            for how, rule in _HOWS.items()
        ],
    },
}
BINDING: Body = {
    "metadata": {"name": "attacked"},
    "spec": {"policyName": "attacked", "validationActions": ["Deny"]},
}

_INTEGER = {"type": "integer"}
_ALTERNATIVES = 20
_DEFAULTED: Body = {"type": "object", "default": {}, "properties": {"t": {"type": "string", "default": "x" * 500}}}
DEFINITION: Body = {
    "metadata": {"name": "things.attacked.example.com"},
    "spec": {
        "group": "attacked.example.com",
        "scope": "Namespaced",
        "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "listed": {"type": "array", "items": {**_INTEGER, "enum": list(range(3_000))}},
                            "any": {
                                "type": "array",
                                "items": {**_INTEGER, "anyOf": [{"enum": [at]} for at in range(_ALTERNATIVES)]},
                            },
                            "defaulted": {
                                "type": "array",
                                "items": {"type": "object", "properties": {"a": _DEFAULTED, "b": _DEFAULTED}},
                            },
                            "text": {"type": "string", "pattern": STEEP % 99},
                        },
                    }
                },
            }
        ],
    },
}


def prepare(client: Callable[[str, Body], object]) -> None:
    """Create the objects with which expressions, patterns and schemas are evaluated; `client` creates an object at a
    path.
    """
    client(DEFINITIONS, DEFINITION)
    client(POLICIES, POLICY)
    client(BINDINGS, BINDING)


class Question(NamedTuple):
    """A request, without the caller's credentials."""

    shape: str
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes = b""


def _post(shape: str, path: str, fields: Body, media_type: str = JSON) -> Question:
    return Question(shape, "POST", f"{path}?dryRun=All", {"content-type": media_type}, json.dumps(fields).encode())


def selectors(size: int, choice: random.Random) -> Question:
    """Return a request for a list, or for the deletion of a collection, by a selector with very many terms."""
    size = min(size, SELECTED)
    terms = {
        "a!=": lambda at: f"a!=b{at}",
        "other keys": lambda at: f"k{at}!=b",
        "notin": lambda at: f"a notin (b{at},c{at})",
        "in": lambda at: f"a in (b,c{at})",
        "absent": lambda at: f"!k{at}",
        "numbers": lambda at: f"a>{at}",
    }
    shape = choice.choice(list(terms))
    text = ",".join(terms[shape](at) for at in range(max(size // 14, 1)))
    name = choice.choice(("labelSelector", "labelSelector", "fieldSelector"))
    if name == "fieldSelector":
        text = ",".join(f"metadata.name!=n{at}" for at in range(max(size // 20, 1)))
    resource = choice.choice(("configmaps", "pods", "events"))
    method, more = choice.choice((("GET", ""), ("GET", "&limit=3"), ("DELETE", "&dryRun=All")))
    return Question(shape, method, f"{NAMESPACED}/{resource}?{name}={quote(text)}{more}", {})


def _field(number: int, data: bytes) -> bytes:
    size, length = len(data), bytearray()
    while size >= 0x80:
        length.append(size & 0x7F | 0x80)
        size >>= 7
    length.append(size)
    return bytes((number << 3 | 2,)) + bytes(length) + data


def _bare_requirements(size: int) -> bytes:
    """Return a SelfSubjectAccessReview in protobuf whose selector requirements take two bytes each."""
    selector = _field(2, b"") * (size // 2)
    spec = _field(1, _field(2, b"get") + _field(5, b"pods") + _field(9, selector))
    kind = _field(1, b"authorization.k8s.io/v1") + _field(2, b"SelfSubjectAccessReview")
    return b"k8s\0" + _field(1, kind) + _field(2, _field(2, spec))


def reviews(size: int, choice: random.Random) -> Question:
    """Return an access review with many requirements."""
    shape = choice.choice(("bare requirements", "requirements", "values", "groups", "extra"))
    if shape == "bare requirements":
        path = f"{REVIEWS}/selfsubjectaccessreviews"
        return Question(shape, "POST", path, {"content-type": PROTOBUF}, _bare_requirements(size))
    count = max(size // 60, 1)
    asked: Body = {"verb": "list", "resource": "pods"}
    spec: Body = {"resourceAttributes": asked, "user": "a"}
    if shape == "requirements":
        asked["labelSelector"] = {"requirements": [{"key": f"k{at}", "operator": "Exists"} for at in range(count)]}
    elif shape == "values":
        values = [f"v{at}" for at in range(max(size // 8, 1))]
        asked["fieldSelector"] = {"requirements": [{"key": "a", "operator": "In", "values": values}]}
    elif shape == "groups":
        spec["groups"] = [f"g{at}" for at in range(max(size // 8, 1))]
    else:
        spec["extra"] = {f"k{at}": ["v"] for at in range(max(size // 12, 1))}
    kind = (
        "subjectaccessreviews"
        if shape in ("groups", "extra")
        else choice.choice(("selfsubjectaccessreviews", "subjectaccessreviews"))
    )
    if kind.startswith("self"):
        spec.pop("user")
    return _post(shape, f"{REVIEWS}/{kind}", {"spec": spec})


def expressions(size: int, choice: random.Random) -> Question:
    """Return the creation of an object on which a policy's expressions are evaluated, or of a policy with long
    expressions.
    """
    shape = choice.choice([*_HOWS, "long", "nested", "macros"])
    if shape in _HOWS:
        words = [f"{at}" for at in range(max(size // 10, 1))]
        text = "ab" * (size // 2) if shape in ("find", "matches") else ",".join(words)
        other = ",".join(f"-{word}" for word in words)
        return _post(shape, CONFIGMAPS, {"metadata": {"name": "e"}, "data": {"how": shape, "a": text, "b": other}})
    depth = min(size // 20, 300)
    source = {
        "long": " || ".join(["object.metadata.name == 'a'"] * (size // 30 + 1)),
        "nested": "(" * depth + "true" + ")" * depth,
        "macros": "".join(f"[1,2,3].all(x{at}, " for at in range(depth // 10 + 1)) + "true" + ")" * (depth // 10 + 1),
    }[shape]
    spec = {**POLICY["spec"], "validations": [{"expression": source}]}
    return _post(shape, POLICIES, {"metadata": {"name": "p"}, "spec": spec})


def patterns(size: int, choice: random.Random) -> Question:
    """Return the creation of an object with a value for a pattern, or of a CustomResourceDefinition with an expensive
    pattern.
    """
    if choice.random() < 0.6:
        text = choice.choice(("a", "b", "ab", "aab")) * (min(size, 100_000) // 2)
        fields = {"apiVersion": "attacked.example.com/v1", "kind": "Thing", "metadata": {"name": "t"}, "text": text}
        return _post("value", THINGS, fields)
    pattern = choice.choice((STEEP % 999, "(a+)+$", "(a|aa)*" * min(size // 8, 900), "a{999}" * min(size // 7, 900)))
    definition = json.loads(json.dumps(DEFINITION).replace("attacked.", "patterned."))
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"] = {"text": {"type": "string", "pattern": pattern, "default": "ab" * min(size // 2, 5_000)}}
    return _post("steep" if pattern == STEEP % 999 else "pattern", DEFINITIONS, definition)


def schemas(size: int, choice: random.Random) -> Question:
    """Return the creation of an object for which a schema multiplies the work, or of a CustomResourceDefinition with
    such a schema.
    """
    shape = choice.choice(("enum", "any", "defaulted", "deep", "wide"))
    fields: Body = {"apiVersion": "attacked.example.com/v1", "kind": "Thing", "metadata": {"name": "t"}}
    if shape == "enum":
        return _post(shape, THINGS, {**fields, "listed": [-1] * (size // 4)})
    if shape == "any":
        return _post(shape, THINGS, {**fields, "any": [_ALTERNATIVES - 1, _ALTERNATIVES] * (size // 8)})
    if shape == "defaulted":
        return _post(shape, THINGS, {**fields, "defaulted": [{}] * (size // 4)})
    definition = json.loads(json.dumps(DEFINITION).replace("attacked.", "nested."))
    schema: Body = {"type": "string"}
    if shape == "deep":
        for at in range(min(size // 60, 60)):
            schema = (
                {"type": "object", "default": {}, "properties": {f"a{at}": schema, f"b{at}": schema}}
                if at < 8
                else ({"type": "array", "items": schema})
            )
    else:
        schema = {"type": "object", "properties": {f"k{at}": _DEFAULTED for at in range(min(size // 700, 100) + 1)}}
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"] = {"s": schema}
    return _post(shape, DEFINITIONS, definition)


def lists(size: int, choice: random.Random) -> Question:
    """Return the creation of an object with one of the lists that once had the highest cost per byte."""
    shape = choice.choice(("containers", "owners", "except", "crons", "ports", "bare containers"))
    metadata: Body = {"name": "l"}
    if shape == "bare containers":
        kind = _field(1, b"v1") + _field(2, b"Pod")
        body = (
            b"k8s\0" + _field(1, kind) + _field(2, _field(1, _field(1, b"l")) + _field(2, _field(2, b"") * (size // 2)))
        )
        return Question(shape, "POST", f"{NAMESPACED}/pods?dryRun=All", {"content-type": PROTOBUF}, body)
    if shape == "containers":
        return _post(shape, f"{NAMESPACED}/pods", {"metadata": metadata, "spec": {"containers": [{}] * (size // 4)}})
    if shape == "owners":
        return _post(shape, CONFIGMAPS, {"metadata": {**metadata, "ownerReferences": [{}] * (size // 4)}})
    if shape == "ports":
        ports = [{"port": at % 65_535 + 1} for at in range(size // 14 + 1)]
        return _post(shape, f"{NAMESPACED}/services", {"metadata": metadata, "spec": {"ports": ports}})
    if shape == "crons":
        minutes = ",".join(str(at % 60) for at in range(size // 3 + 1))
        job = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "x"}], "restartPolicy": "Never"}}}}
        spec = {"schedule": f"{minutes} * * * *", "jobTemplate": job}
        return _post(shape, "/apis/batch/v1/namespaces/attack/cronjobs", {"metadata": metadata, "spec": spec})
    without = [f"10.{at // 256 % 256}.{at % 256}.0/24" for at in range(size // 16 + 1)]
    peers = [{"from": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": without}}]}]
    path = "/apis/networking.k8s.io/v1/namespaces/attack/networkpolicies"
    return _post(shape, path, {"metadata": metadata, "spec": {"podSelector": {}, "ingress": peers}})


def answers(size: int, choice: random.Random) -> Question:
    """Return a request whose response is long, or has an expensive format."""
    accept = choice.choice(("application/yaml", "application/yaml", "application/json;as=Table;v=v1;g=meta.k8s.io"))
    path = choice.choice(("/openapi/v2", "/api/v1/configmaps", DEFINITIONS, f"{CONFIGMAPS}/large", "/apis"))
    return Question("yaml" if "yaml" in accept else "table", "GET", path, {"accept": accept})


def pages(size: int, choice: random.Random) -> Question:
    """Return a request for the UI page's data, including hidden objects."""
    name, hidden = "x" * min(size, 5_000), quote("é" * min(size // 6, 900))
    path = choice.choice(
        (
            f"/ui/api/change?revision={choice.randrange(1, 200)}",
            f"/ui/api/log?resource=secrets&limit={choice.choice((1, 50, 10**9))}",
            f"/ui/api/history?resource=configmaps&namespace=attack&name={name}",
            f"/ui/api/events?before={choice.choice((-1, 0, 10**18))}",
            f"/ui/api/objects?resource={hidden}",
        )
    )
    return Question(path.partition("?")[0], "GET", path, {})

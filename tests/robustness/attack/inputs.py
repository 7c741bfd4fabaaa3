"""Generates an unlimited number of requests of many types that should cost too much or cause errors; the same seed
gives the same requests.

Each request is either a plausible request that is enlarged at one place, or has a form that once caused an error. Most
writes are dry runs. Because most writes are dry runs, the server's data stays small, but the server still makes every
decision about each write.
"""

from __future__ import annotations

import json
import random
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote

import msgspec

from tests.robustness.attack import connections, dense, questions
from tests.robustness.attack.callers import CALLERS, token_of

PIECES = (
    "['",
    "a.",
    "-----BEGIN A-----\n",
    "://a:",
    "://a:@",
    "(",
    "[",
    "{",
    "0.",
    "*/",
    ",",
    "a,",
    "=",
    "%",
    "\\",
    "\u0000",
    "é",
    "\U0001f600",
    " ",
    "$(A)",
    "password=",
    "../",
    "-",
    "9",
    "a-",
    "\n",
    '"',
)
NUMBERS = (0, -1, 1, 2**31 - 1, 2**31, -(2**31) - 1, 2**62, 2**63 - 1, -(2**63), 2**63, 10**400, 0.5, 1e300)
SIZES = (100, 300, 300, 1_000, 1_000, 1_000, 3_000, 3_000, 10_000, 70_000)
"""The approximate size of a generated request in bytes; worker processes handle requests of more than 64 KiB."""

USUAL_SIZES = (100, 300, 300, 1_000, 1_000, 1_000, 3_000, 3_000, 10_000)
"""Sizes of usual requests in bytes: most objects have one thousand to three thousand bytes, and ConfigMaps with files
ten thousand.
"""

LARGE_SIZES = (*SIZES, *SIZES, *SIZES, 200_000, 600_000, 1_500_000)
"""Sizes in bytes of the requests in a long run."""

_LONGEST_CONNECTION = 300_000
"""The size of a flood in bytes; the server soon stops a flood, or the flood has its effect before."""

_QUESTIONS = (
    questions.selectors,
    questions.reviews,
    questions.expressions,
    questions.patterns,
    questions.schemas,
    questions.lists,
    questions.answers,
    questions.pages,
)

_JSON = "application/json"
_NAMESPACED = "/api/v1/namespaces/attack"


REQUEST, CERTIFICATES, HTTP1, HTTP2 = "request", "certificates", "http/1.1", "h2"
"""The content of an input: a request, the client's certificates, or all bytes of a connection."""


class Input(NamedTuple):
    """One input: a request or the content of a connection, and its caller."""

    family: str
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes = b""
    caller: str = "admin"
    shape: str = ""
    """The name of the variant, if the family of inputs has variants."""
    is_a: str = REQUEST
    stays: bool = True
    """Whether the client waits for the response."""

    @property
    def size(self) -> int:
        """The approximate number of bytes that are sent."""
        return len(self.path) + sum(len(name) + len(value) for name, value in self.headers.items()) + len(self.body)


Body = dict[str, Any]


class Inputs:
    """Generates inputs."""

    def __init__(self, bodies: Mapping[str, Body], seed: int, sizes: tuple[int, ...] = SIZES) -> None:
        """Enlarge `bodies`, which are request bodies by URL path; each input has one of the sizes in `sizes`."""
        self._bodies = bodies
        self._choice = random.Random(seed)
        self._sizes = sizes
        self._families: tuple[tuple[str, Callable[[int], Input]], ...] = (
            ("blown up", self._blown_up),
            ("blown up", self._blown_up),
            ("blown up", self._blown_up),
            ("dense", self._dense),
            ("dense", self._dense),
            ("blown up yaml", self._yaml),
            ("known shape", self._known),
            ("json patch", self._json_patch),
            ("merge patch", self._merge_patch),
            ("strategic patch", self._strategic_patch),
            ("apply", self._apply),
            ("noise", self._noise),
            ("query", self._query),
            ("page", self._page),
            ("token", self._token),
            ("header", self._header),
            ("path", self._path),
            ("certificates", self._certificates),
            ("HTTP/1.1", self._http1),
            ("HTTP/2", self._http2),
            ("HTTP/2", self._http2),
            *((each.__name__, self._question(each)) for each in _QUESTIONS),
        )

    def __iter__(self) -> Iterator[Input]:
        while True:
            # each with the same probability
            for family, make in self._choice.sample(self._families, len(self._families)):
                caller = self._choice.choice(CALLERS)
                made = make(self._choice.choice(self._sizes))
                yield made._replace(family=family, caller=made.caller if made.is_a != REQUEST else caller)

    # Attacks on connections and on queries.

    def _certificates(self, size: int) -> Input:
        shape, body = connections.certificates(size, self._choice)
        return Input("", "", "", {}, body, "anonymous", shape, CERTIFICATES)

    def _http1(self, size: int) -> Input:
        return self._bytes(HTTP1, connections.HTTP1, size)

    def _http2(self, size: int) -> Input:
        return self._bytes(HTTP2, connections.HTTP2, size)

    def _bytes(self, is_a: str, shapes: Sequence[connections.ConnectionAttack], size: int) -> Input:
        shape, caller = self._choice.choice(shapes), self._choice.choice(CALLERS)
        body = shape.make(min(size, _LONGEST_CONNECTION), token_of(caller))
        return Input("", "", "", {}, body, caller, shape.name, is_a, shape.stays)

    def _question(self, ask: Callable[[int, random.Random], questions.Question]) -> Callable[[int], Input]:
        def make(size: int) -> Input:
            asked = ask(size, self._choice)
            return Input("", asked.method, asked.path, asked.headers, asked.body, shape=asked.shape)

        return make

    # Bodies.

    def _body(self) -> tuple[str, Body]:
        path = self._choice.choice(list(self._bodies))
        return path, json.loads(json.dumps(self._bodies[path]))

    def _blown_up(self, size: int) -> Input:
        path, fields = self._body()
        self._blow_up(fields, size)
        validation = self._choice.choice(("Strict", "Warn", "Ignore"))
        return _write("POST", f"{path}?dryRun=All&fieldValidation={validation}", _JSON, fields)

    def _dense(self, size: int) -> Input:
        """Return an input whose body has as many elements as possible, in any list or map of a schema."""
        path, fields = self._body()
        steps, schema = self._choice.choice(dense.lists_of(path))
        value = dense.filled(schema, size, self._choice)
        if self._choice.random() < 0.3 and steps[0] != "metadata":
            how = self._choice.choice(("merge-patch", "strategic-merge-patch"))
            return self._patch(f"{how}+json", dense.wrapped(steps, value))
        dense.put(fields, steps, value)
        return _write("POST", f"{path}?dryRun=All&fieldValidation=Strict", _JSON, fields)

    def _yaml(self, size: int) -> Input:
        path, fields = self._body()
        self._blow_up(fields, size)
        text = json.dumps(fields, ensure_ascii=False)  # JSON is also YAML
        if self._choice.random() < 0.3:
            text = "a: &a " + "[" * 20 + "x" + "]" * 20 + "\n" + "".join(f"b{n}: *a\n" for n in range(size // 8))
        elif self._choice.random() < 0.5:
            text = "metadata:\n  name: a\n  labels:\n" + "".join(f"    k{n}: {n}\n" for n in range(size // 12))
        return Input("", "POST", f"{path}?dryRun=All", {"content-type": "application/yaml"}, text.encode())

    def _blow_up(self, fields: Any, size: int) -> None:
        """Insert about `size` bytes at one place in `fields` or in an object below."""
        places = list(_places(fields))
        holder, key = self._choice.choice(places)
        holder[key] = self._inflated(holder[key], size)

    def _inflated(self, value: Any, size: int) -> Any:
        kind = self._choice.randrange(6)
        if isinstance(value, int | float) and kind < 4:
            return self._choice.choice(NUMBERS)
        if isinstance(value, list) and value and kind < 4:
            one = json.dumps(value[0])
            return [self._variant(json.loads(one), number) for number in range(max(size // (len(one) + 8), 1))]
        if isinstance(value, dict) and kind < 4:
            piece = self._choice.choice(PIECES)
            some = next(iter(value.values()), "x")
            count = size // (len(json.dumps(some)) + 12)
            return {**value, **{f"{piece[:6]}k{number}": some for number in range(max(count, 1))}}
        if kind == 4:
            return _nested(min(size // 2, 20_000), self._choice.random() < 0.5)
        if kind == 5:
            return ["x"] * (size // 4)
        return self._choice.choice(PIECES) * (size // 2)

    def _variant(self, one: Any, number: int) -> Any:
        if isinstance(one, dict):
            for name in ("name", "key", "uid", "topologyKey", "ip", "containerPort", "port"):
                if name in one and self._choice.random() < 0.9:
                    one[name] = number % 65536 if isinstance(one[name], int) else f"{one[name]}-{number}"
        return one

    def _known(self, size: int) -> Input:
        """Return an input of a form that once caused an error (`test_growth` contains these forms as functions)."""
        count = max(size // 60, 1)
        metadata = {"name": "known", "namespace": "attack"}
        owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "controller": True}
        containers = [{"name": "c", "image": "x"}]
        request = urlsafe_b64encode(b"-----BEGIN A-----\n" * (size // 18)).decode().replace("-", "+").replace("_", "/")
        field = {"apiVersion": "v1", "fieldPath": "['" * (size // 2)}
        spread = [{"maxSkew": 1, "topologyKey": f"k{n}", "whenUnsatisfiable": "DoNotSchedule"} for n in range(count)]
        signer = {"signerName": "example.com/a", "usages": ["client auth"]}
        shapes: tuple[tuple[str, Body], ...] = (
            ("configmaps", {"metadata": {**metadata, "ownerReferences": [owner] * count}}),
            ("configmaps", {"metadata": {**metadata, "labels": {f"-{n}-": "!" for n in range(count)}}}),
            ("configmaps", {"metadata": {**metadata, "finalizers": [f"a{n}" for n in range(count)]}}),
            ("configmaps", {"metadata": {**metadata, "managedFields": [_managed(n) for n in range(size // 150)]}}),
            ("pods", {"metadata": metadata, "spec": {"containers": containers, "topologySpreadConstraints": spread}}),
            (
                "pods",
                {
                    "metadata": metadata,
                    "spec": {
                        "containers": [
                            {**containers[0], "env": [{"name": "A", "valueFrom": {"fieldRef": field}}]},
                        ]
                    },
                },
            ),
            ("pods", {"metadata": metadata, "spec": {"containers": [{"name": "c", "image": "x"}] * count}}),
            ("services", {"metadata": metadata, "spec": {"ports": [{"port": 80}] * count}}),
            ("", {"metadata": {"name": "known"}, "spec": {**signer, "request": request}}),
        )
        resource, fields = self._choice.choice(shapes)
        path = f"{_NAMESPACED}/{resource}" if resource else "/apis/certificates.k8s.io/v1/certificatesigningrequests"
        return _write("POST", f"{path}?dryRun=All", _JSON, fields)

    def _noise(self, size: int) -> Input:
        path, fields = self._body()
        protobuf = self._choice.random() < 0.5
        body = bytearray(json.dumps(fields).encode())
        if protobuf:
            start = self._choice.choice((b"\x0a\xff\xff\xff\xff\x7f", b"\x12\x02\xff\xff", b"\x0a\x00" * 9))
            body = bytearray(b"k8s\0" + start + self._choice.randbytes(min(size, 20_000)))
        else:
            for _ in range(self._choice.choice((1, 2, 10))):
                body[self._choice.randrange(len(body))] = self._choice.randrange(256)
        media_type = "application/vnd.kubernetes.protobuf" if protobuf else _JSON
        return Input("", "POST", f"{path}?dryRun=All", {"content-type": media_type}, bytes(body))

    # Patches of an existing object.

    def _patch(self, media_type: str, fields: Any) -> Input:
        target = "configmaps/victim" if self._choice.random() < 0.5 else "pods/victim"
        path = f"{_NAMESPACED}/{target}?dryRun=All&fieldManager=attack"
        return _write("PATCH", path, f"application/{media_type}", fields)

    def _json_patch(self, size: int) -> Input:
        count = size // 60
        if self._choice.random() < 0.3:
            steps: list[Body] = [{"op": "add", "path": "/x", "value": {}}]
            for _ in range(min(count, 5_000) // 3):
                steps += [{"op": "add", "path": "/y", "value": {}}, {"op": "move", "from": "/x", "path": "/y/x"}]
                steps.append({"op": "move", "from": "/y", "path": "/x"})
        elif self._choice.random() < 0.5:  # each operation copies the whole object into itself
            steps = [{"op": "copy", "from": "/data", "path": f"/data/a{n}"} for n in range(count)]
        else:
            op = self._choice.choice(("add", "replace", "test", "remove"))
            pointer = "/data/" + self._choice.choice(PIECES) * 3
            steps = [{"op": op, "path": pointer + str(n), "value": "x"} for n in range(count)]
        return self._patch("json-patch+json", steps)

    def _merge_patch(self, size: int) -> Input:
        fields: Body = {"metadata": {"labels": {"a": "b"}}, "data": {"a": "b"}, "spec": {"containers": [{"name": "c"}]}}
        self._blow_up(fields, size)
        return self._patch("merge-patch+json", fields)

    def _strategic_patch(self, size: int) -> Input:
        count = size // 50
        containers: list[Any] = [{"name": f"c-{n}", "image": "x"} for n in range(count)]
        spec: Body = {"containers": containers}
        directive = self._choice.randrange(5)
        if directive == 0:
            spec["containers"] = [{"name": f"c-{n}", "$patch": "delete"} for n in range(count)]
        elif directive == 1:
            spec["$setElementOrder/containers"] = [{"name": f"c-{n}"} for n in reversed(range(count))]
        elif directive == 2:
            spec = {"$retainKeys": [f"n{n}" for n in range(count)]}
        elif directive == 3:
            spec["$deleteFromPrimitiveList/finalizers"] = ["a"] * count
        return self._patch("strategic-merge-patch+json", {"spec": spec})

    def _apply(self, size: int) -> Input:
        fields: Body = {
            "kind": "ConfigMap",
            "apiVersion": "v1",
            "metadata": {"name": "victim", "labels": {"a": "b"}, "finalizers": ["x.example.com/a"]},
            "data": {"a": "b"},
        }
        self._blow_up(fields["metadata" if self._choice.random() < 0.5 else "data"], size // 2)
        text = json.dumps(fields).encode()
        headers = {"content-type": "application/apply-patch+yaml"}
        path = f"{_NAMESPACED}/configmaps/victim?dryRun=All&fieldManager=a&force=true"
        return Input("", "PATCH", path, headers, text)

    # Bodies that are not objects.

    def _query(self, size: int) -> Input:
        size = min(size, 60_000)
        piece = quote(self._choice.choice(PIECES)) or "x"
        long = piece * (size // len(piece))
        name = self._choice.choice(("labelSelector", "fieldSelector", "continue", "limit", "resourceVersion"))
        many = "a%20in%20(" + "b," * (size // 2) + "b)"
        value = self._choice.choice((long, "9" * size, many, "a=b," * (size // 4) + "a"))
        token = urlsafe_b64encode(b'{"v":"' + self._choice.randbytes(9) + b"[" * (size // 2)).decode()
        value = token if name == "continue" and self._choice.random() < 0.6 else value
        return Input("", "GET", f"{_NAMESPACED}/configmaps?limit=5&{name}={value}", {})

    def _page(self, size: int) -> Input:
        size = min(size, 5_000)
        question = self._choice.choice(("moment", "events", "history", "object", "change", "objects", "picture"))
        name = self._choice.choice(("at", "revision", "name", "resource", "namespace", "before", "limit"))
        value = self._choice.choice(("9" * size, "%00", "-1", "x" * size, quote("é") * (size // 6), "1e9"))
        path = self._choice.choice((f"/ui/api/{question}?{name}={value}", f"/debug/profile?seconds={'9' * size}"))
        return Input("", "GET", path, {})

    def _token(self, size: int) -> Input:
        size = min(size, 60_000)
        parts = (
            b"\xff\xfe",
            b'{"alg":"ES256","crit":' + b"[" * size,
            b'{"alg":"none"}',
            b'{"alg":"RS256","kid":"' + b"a" * size + b'"}',
            b'{"sub":' * (size // 7),
            self._choice.randbytes(30),
        )
        token = ".".join(urlsafe_b64encode(self._choice.choice(parts)).decode().rstrip("=") for _ in range(3))
        return Input("", "GET", f"{_NAMESPACED}/configmaps", {"authorization": f"Bearer {token}"})

    def _header(self, size: int) -> Input:
        size = min(size, 900_000)
        piece = self._choice.choice(("a,", "*/*;q=0.1,", "://a:", "x", "application/json;as=Table,", ";"))
        name = self._choice.choice(("user-agent", "accept", "accept-encoding", "x-anything", "impersonate-user"))
        return Input("", "GET", f"{_NAMESPACED}/configmaps/victim", {name: piece * (size // len(piece))})

    def _path(self, size: int) -> Input:
        size = min(size, 60_000)
        piece = self._choice.choice(("a/", "../", "%2e%2e/", "%00", "://a:", "%ff", "api/", "//"))
        return Input("", self._choice.choice(("GET", "POST", "DELETE")), "/api/v1/" + piece * (size // len(piece)), {})


def _write(method: str, path: str, media_type: str, fields: Any) -> Input:
    return Input("", method, path, {"content-type": media_type}, _encoded(fields))


def _encoded(fields: Any) -> bytes:
    try:
        return msgspec.json.encode(fields)
    except (OverflowError, ValueError):  # numbers that are larger than that
        return json.dumps(fields).encode()


def _managed(number: int) -> Body:
    fields: Body = {"f:data": {f"f:{number}": {}}}
    marks = {"operation": "Update", "manager": f"m{number}", "apiVersion": "v1", "fieldsType": "FieldsV1"}
    return {**marks, "time": "2026-01-01T00:00:00Z", "fieldsV1": fields}


def _nested(depth: int, lists: bool) -> Any:
    """Return a deeply nested JSON value, as text, because Python's JSON encoder limits the depth."""
    value: Any = "x"
    for _ in range(min(depth, 900)):
        value = [value] if lists else {"a": value}
    return value


def _places(fields: dict[Any, Any] | list[Any]) -> Iterator[tuple[Any, Any]]:
    """Yield every place within an object, as the container of the place and its key."""
    pairs: list[tuple[Any, Any]] = list(fields.items() if isinstance(fields, dict) else enumerate(fields))
    for key, value in pairs:
        yield fields, key
        if isinstance(value, dict | list):
            yield from _places(value)

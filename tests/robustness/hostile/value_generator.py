"""Generates values for the types in an OpenAPI document: most values are plausible, some are unusual or invalid.

Equal seeds give equal values. The generator has no information about kinds: it reads the document, and guesses the
content of fields from their names.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

Schema = Mapping[str, Any]

STRANGE = (
    "",
    " ",
    "-",
    ".",
    "..",
    "/",
    "a/b/c",
    "../x",
    "A_b",
    "a" * 64,
    "a" * 254,
    "x" * 5000,
    "é",
    "\u0000",
    "\ud800",
    "a\nb",
    "%00",
    "{}",
    "null",
    "0",
    "-1",
    "1e999",
    "9" * 30,
    "99999999999999999999",
    "'; --",
    "\U0001f600",
)
WORDS = (
    "a",
    "b",
    "web",
    "www.example.com",
    "example.com/a",
    "v1",
    "apps/v1",
    "Pod",
    "Service",
    "pods",
    "default",
    "10.96.0.10",
    "fd00:10:96::1",
    "192.0.2.1",
    "10.0.0.0/8",
    "fd00::/64",
    "01.2.3.4",
    "::ffff:1.2.3.4",
    "100m",
    "1.5Gi",
    "1e3",
    "-1",
    "50%",
    "80",
    "http",
    "/var/lib",
    "*/5 * * * *",
    "Europe/Berlin",
    "TCP",
    "All",
    "Always",
    "Never",
    "None",
    "Exists",
    "In",
    "Equal",
    "NoSchedule",
    "nginx:1",
    "self.a > 1",
    "cpu",
    "memory",
    "requests.cpu",
    "services.nodeports",
    "kubernetes.io/os",
    "2026-01-02T03:04:05Z",
)
BY_NAME: Mapping[str, tuple[Any, ...]] = {
    "clusterIP": ("", "None", "10.96.0.10", "fd00:10:96::1", "x"),
    "clusterIPs": ("None", "10.96.0.10", "10.96.0.11", "fd00:10:96::1"),
    "ipFamilies": ("IPv4", "IPv6", "IPv5"),
    "addressType": ("IPv4", "IPv6", "FQDN", "x"),
    "addresses": ("192.0.2.1", "fd00::1", "a.example.com", "127.0.0.1"),
    "protocol": ("TCP", "UDP", "SCTP", "tcp", ""),
    "operator": ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Equal", ""),
    "key": ("a", "example.com/a", "kubernetes.io/hostname", "", "a/b/c"),
    "type": ("ClusterIP", "NodePort", "ExternalName", "Opaque", "RollingUpdate", "Utilization", "string", "object"),
    "schedule": ("*/5 * * * *", "@daily", "TZ=UTC 0 0 * * *", "61 * * * *", "* * *"),
    "timeZone": ("Europe/Berlin", "Etc/UTC", "Local", "../x"),
    "finalizers": ("example.com/a", "foregroundDeletion", "a", ""),
    "deletionTimestamp": ("2026-01-02T03:04:05Z", None),
    "generateName": ("g-", "", "G", "g" * 70),
    "resourceVersion": ("", "0", "1", "x", "99999999999999999999"),
    "continue": ("", "x", "e30"),
}
QUANTITIES = ("1", "100m", "1.5Gi", "1e3", "0", "-1", "2k", "0.0000000001", "9" * 40, "1e9999", "1Zi", "", 1, 1.5)
_NUMBERS = (0, 1, 1, 2, 3, 80, 443, 8080, 30000, 65535, 65536, -1, 600, 3600, 2**31 - 1, -(2**31))
_BEYOND = (2**31, 2**53, 2**63 - 1, 2**63, -(2**63) - 1, 10**30)
_TIMES = ("2026-01-02T03:04:05Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59-12:00", "2026-01-02T03:04:05,5+01:00")
_MICRO_TIMES = ("2026-01-02T03:04:05.123456Z", "9999-12-31T23:59:59.999999-12:00")
_DEEPEST = 12


class ValueGenerator:
    """A generator of values for one OpenAPI document."""

    def __init__(self, definitions: Mapping[str, Schema], choice: random.Random) -> None:
        """Create a generator that resolves references with `definitions`, and draws random values from `choice`."""
        self.definitions = definitions
        self._choice = choice
        self._room = 0

    def of(self, schema: Schema, *, size: int = 60) -> Any:
        """Return a value of a type with at most about `size` fields and elements, besides required ones."""
        self._room = size
        return self._value(schema, "", 0)

    def name(self) -> str:
        """Return a valid or invalid name of an object."""
        return (
            self._choice.choice(STRANGE) if self._rarely() else self._choice.choice(("a", "b", "c", "d", "a.b", "e-1"))
        )

    def _rarely(self, chance: float = 0.04) -> bool:
        return self._choice.random() < chance

    def _value(self, schema: Schema, name: str, depth: int) -> Any:
        self._room -= 1
        if self._rarely(0.005):
            return self._anything()
        if schema.get("$ref", "").endswith(".Quantity"):
            return self._choice.choice(QUANTITIES)
        schema = self._resolved(schema)
        if "enum" in schema and not self._rarely():
            return self._choice.choice(schema["enum"])
        match schema.get("type", "object"):
            case "object":
                return self._object(schema, name, depth)
            case "array":
                return self._several(schema, name, depth)
            case "string":
                return self._text(schema.get("format", ""), name)
            case "boolean":
                return self._choice.random() < 0.5
        number = self._choice.choice(_BEYOND if self._rarely(0.01) else _NUMBERS)
        return number / 3 if schema["type"] == "number" or self._rarely(0.01) else number

    def _resolved(self, schema: Schema) -> Schema:
        while True:
            if "$ref" in schema:
                schema = self.definitions[schema["$ref"].rpartition("/")[2]]
            elif "allOf" in schema:
                schema = schema["allOf"][0]
            elif "oneOf" in schema:
                schema = self._choice.choice(schema["oneOf"])
            else:
                return schema

    def _object(self, schema: Schema, name: str, depth: int) -> Any:
        if "properties" not in schema:
            return self._map(schema, name, depth)
        required = schema.get("required", ())
        chance = 0.75 if depth < 2 else 0.35
        fields = list(schema["properties"].items())
        self._choice.shuffle(fields)  # otherwise the first values would always take the space
        made = {}
        for field, inner in fields:
            wanted = not self._rarely() if field in required else self._room > 0 and self._rarely(chance)
            if wanted and depth < _DEEPEST:
                made[field] = self._value(inner, field, depth + 1)
        return made

    def _map(self, schema: Schema, name: str, depth: int) -> dict[str, Any]:
        inner = schema.get("additionalProperties") or {"type": "string"}
        keys = [self._text("", "key") for _ in range(self._choice.choice((0, 1, 1, 2)))]
        return {key: self._value(inner, name, depth + 1) for key in keys if depth < _DEEPEST}

    def _several(self, schema: Schema, name: str, depth: int) -> list[Any]:
        count = self._choice.choice((0, 1, 1, 1, 2, 3)) if self._room > 0 else 1
        made = [self._value(schema["items"], name, depth + 1) for _ in range(count) if depth < _DEEPEST]
        return made + made[:1] if self._rarely() else made

    def _text(self, form: str, name: str) -> Any:
        if self._rarely():
            return self._choice.choice(STRANGE)
        if form in ("date-time", "micro-time"):
            return self._choice.choice(_MICRO_TIMES if name in ("eventTime", "renewTime", "acquireTime") else _TIMES)
        if form == "byte":
            return self._choice.choice(("YQ==", "", "YQ", "LS0tLS1CRUdJTg=="))
        return self._choice.choice(BY_NAME.get(name, WORDS))

    def _anything(self) -> Any:
        return self._choice.choice(
            (None, True, 0, -1, 1.5, 1e300, "x", "", [], {}, [None], [[]], {"": None}, {"a": {}})
        )

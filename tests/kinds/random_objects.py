"""Generates random objects for a schema: types are correct, values are random, and the same seed gives the same
objects.
"""

from __future__ import annotations

from random import Random
from typing import Any

from ctrlmgr.schema.schema import Schema

_TEXTS = (
    *("", "a", "A_b", "-", "a/b", "a/b/c", "x.y/z", "ü", "a" * 300, "/", "/a/../b", "../a", "0", "10%", "200%", "-5"),
    *("1,3-5", "10.0.0.1", "fe80::1", "10.0.0.0/8", "::ffff:1.2.3.4/100", "* * * * *", "@every 1h", "Europe/Berlin"),
    *("Always", "Never", "OnFailure", "TCP", "Default", "None", "ClusterFirst", "In", "Exists", "Lt", "Gt", "Equal"),
    *("NoExecute", "DoNotSchedule", "RollingUpdate", "OnDelete", "Recreate", "Indexed", "FailIndex", "Failed", "True"),
    *("ReadWriteOnce", "ReadWriteOncePod", "Block", "Retain", "Resource", "Pods", "Utilization", "Prefix", "Ingress"),
    *("PersistentVolumeClaim", "metadata.name", "metadata.labels['a']", "limits.cpu", "requests.hugepages-2Mi"),
    *("ServiceAccount", "User", "windows", "linux", "Localhost", "Guaranteed", "Complete", "SuccessCriteriaMet"),
)
_LEFT_OUT = ("managedFields", "kind", "apiVersion")
_KEYS = ("a", "cpu", "memory", "storage", "hugepages-2Mi", "x.y/z", "pods", "A_b!", "container.apparmor.security.x/c")
_QUANTITIES = ("0", "1", "-1", "500m", "1Gi", "1.5", "1n", "9E", "2e3")
_NUMBERS = (-1, 0, 1, 2, 10, 80, 65535, 65536, 100_001, (1 << 31) - 1)


def random_value(schema: Schema, random: Random, depth: int = 0) -> Any:
    """Return a random value that the decoder of a schema accepts."""
    match schema.kind:
        case "object":
            return _random_fields(schema, random, depth)
        case "map":
            values = schema.values
            assert values is not None
            return {key: random_value(values, random, depth + 1) for key in random.sample(_KEYS, random.randrange(3))}
        case "array":
            items = schema.items
            assert items is not None
            return [random_value(items, random, depth + 1) for _ in range(random.choice((0, 1, 1, 1, 2)))]
        case "integer" | "number":
            return random.choice(_NUMBERS)
        case "boolean":
            return random.random() < 0.5
        case "int-or-string":
            return random.choice((*_NUMBERS, *_TEXTS))
        case "string":
            return _random_text(schema.format, random)
    return {"any": "thing"}


def _random_fields(schema: Schema, random: Random, depth: int) -> dict[str, Any]:
    names = [name for name in schema.properties if name not in _LEFT_OUT]
    share = 0.5 if depth < 2 else 2 / (len(names) + 2)
    chosen = [name for name in names if random.random() < share or name in schema.required]
    return {name: random_value(schema.properties[name], random, depth + 1) for name in chosen}


def _random_text(format_: str, random: Random) -> str:
    if format_ == "quantity":
        return random.choice(_QUANTITIES)
    if format_ in ("date-time", "micro-time"):
        return f"2026-01-0{random.randrange(1, 9)}T00:00:00{'.000000' if format_ == 'micro-time' else ''}Z"
    if format_ == "byte":
        return random.choice(("", "YQ=="))
    return random.choice(_TEXTS)


def mutated(fields: Any, schema: Schema, random: Random) -> Any:
    """Return a copy of `fields` with a random value at one place."""
    if schema.kind == "object" and schema.properties and random.random() < 0.9:
        name = random.choice([each for each in schema.properties if each not in _LEFT_OUT])
        below = (fields if isinstance(fields, dict) else {}).get(name)
        return {**(fields or {}), name: mutated(below, schema.properties[name], random)}
    if schema.kind == "array" and isinstance(fields, list) and fields and random.random() < 0.8:
        index, items = random.randrange(len(fields)), schema.items
        assert items is not None
        return [mutated(each, items, random) if i == index else each for i, each in enumerate(fields)]
    return random_value(schema, random, 2)

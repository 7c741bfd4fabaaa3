"""Compares our decoder for Kubernetes' protobuf with upb, the C decoder in Google's package (`pip install protobuf`).

upb gets descriptors that are created from our own description of the messages. upb decodes into message objects, but
the server works with dicts like those of decoded JSON. Therefore our decoder is compared with decoding into messages
alone, and with two conversions to dicts: the package's `MessageToDict`, and a minimal walk over `ListFields`. Unlike
our decoder, `MessageToDict` and the walk over `ListFields` do not apply the rules for times, quantities and JSON in
bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import msgspec

from bench.decisions.comparison import alternative, microseconds, row
from ctrlmgr.schema import published_schema
from ctrlmgr.schema.protobuf import message, protobuf_decoding
from tests.schema.protobuf_encoder import body

_SCALARS = {"string": 9, "bytes": 12, "json": 12, "bool": 8, "int32": 5, "int64": 3, "double": 1}
_OPTIONAL, _REPEATED, _MESSAGE = 1, 3, 11


def pod(containers: int) -> dict[str, Any]:
    """Return a pod as a client creates it."""
    names = [f"container-{number}" for number in range(containers)]
    resources = {"limits": {"cpu": "500m", "memory": "256Mi"}, "requests": {"cpu": "100m", "memory": "128Mi"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web-1", "namespace": "shop", "labels": {"app": "web", "tier": "front"}},
        "spec": {
            "containers": [
                {
                    "name": name,
                    "image": f"registry.example/{name}:1.27",
                    "env": [{"name": f"VARIABLE_{number}", "value": f"value {number}"} for number in range(8)],
                    "ports": [{"containerPort": 8080, "protocol": "TCP"}],
                    "resources": resources,
                }
                for name in names
            ],
            "tolerations": [{"key": "dedicated", "operator": "Exists", "effect": "NoSchedule"}],
        },
    }


def classes(package: ModuleType, rows: Mapping[str, list[tuple[int, str, str]]]) -> Callable[[str], Any]:
    """Return a function that returns upb's message class for the name of a message."""
    descriptors = alternative("google.protobuf.descriptor_pb2", "protobuf")
    file = descriptors.FileDescriptorProto(name="all.proto", package="k", syntax="proto2")
    for name, fields in rows.items():
        made = file.message_type.add(name=_name(name))
        for number, _, element in fields:
            _add(made, number, f"field_{number}", element)
    pool = alternative("google.protobuf.descriptor_pool", "protobuf").DescriptorPool()
    pool.Add(file)
    return lambda name: package.GetMessageClass(pool.FindMessageTypeByName(f"k.{_name(name)}"))


def _add(made: Any, number: int, name: str, type: str) -> None:
    label = _REPEATED if type.startswith(("repeated ", "map<")) else _OPTIONAL
    element = type.removeprefix("repeated ")
    if element.startswith("map<"):
        value = element.removeprefix("map<string,").removesuffix(">")
        entry = made.nested_type.add(name=f"Entry{number}")
        entry.options.map_entry = True
        _add(entry, 1, "key", "string")
        _add(entry, 2, "value", value)
        made.field.add(name=name, number=number, label=label, type=_MESSAGE, type_name=f".k.{made.name}.{entry.name}")
    elif element in _SCALARS:
        made.field.add(name=name, number=number, label=label, type=_SCALARS[element])
    else:
        made.field.add(name=name, number=number, label=label, type=_MESSAGE, type_name=f".k.{_name(element)}")


def walked(found: Any) -> dict[str, Any]:
    """Return a message as a dict, whose keys are the names of its fields."""
    return {field.name: _value(field, value) for field, value in found.ListFields()}


def _value(field: Any, value: Any) -> Any:
    if field.message_type is None:
        return list(value) if field.is_repeated else value
    if field.message_type.GetOptions().map_entry:
        return {key: walked(each) if hasattr(each, "ListFields") else each for key, each in value.items()}
    return [walked(each) for each in value] if field.is_repeated else walked(value)


def _name(message: str) -> str:
    return message.replace(".", "_").replace("/", "_").replace("-", "_")


def main() -> None:
    """Print all comparisons."""
    factory = alternative("google.protobuf.message_factory", "protobuf")
    to_dict = alternative("google.protobuf.json_format", "protobuf").MessageToDict
    kind = classes(factory, published_schema.messages().messages)(message.message_of("v1", "Pod") or "")
    for containers in (1, 10, 100):
        data = body(pod(containers))
        start, stop = protobuf_decoding._open(data)["raw"]
        raw, text = data[start:stop], msgspec.json.encode(pod(containers))
        ours = microseconds(protobuf_decoding.decode, data)
        size = f"{containers} containers, {len(data):,} bytes"
        row(f"{size}, upb's messages", ours, microseconds(kind.FromString, raw))
        row(f"{size}, MessageToDict", ours, microseconds(lambda body: to_dict(kind.FromString(body)), raw))
        row(f"{size}, ListFields", ours, microseconds(lambda body: walked(kind.FromString(body)), raw))
        row(f"{size}, msgspec on JSON", ours, microseconds(msgspec.json.decode, text))


if __name__ == "__main__":
    main()

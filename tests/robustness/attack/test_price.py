"""Tests of the cost per byte of request bodies with as many elements as possible.

The cost is measured in function calls, because the time depends on the load of the machine. At ten calls per byte, a
machine that makes twenty million calls a second needs half a second for a megabyte. `server_attack` measures the
seconds on a separate server.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.calls import calls
from tests.engine.stage import Stage
from tests.robustness.attack.server_attack import REQUEST_BODIES

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SIZE = 60_000
MOST = 12.0
"""The maximum number of calls per byte: 1.5 times the number for the most expensive of these bodies."""

MOST_OF_NUMBERS = 4.0
"""The maximum number of calls per byte for lists of addresses and numbers, which the server parses one by one."""

STAGE = Stage()
STAGE.namespace("attack")


def schema(schema: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return a CustomResourceDefinition with this schema."""
    fields = json.loads(json.dumps(REQUEST_BODIES[DEFINITIONS]))
    fields["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = {"type": "object", **schema}
    return DEFINITIONS, fields


def versions(version: dict[str, Any] | None) -> tuple[str, dict[str, Any]]:
    """Return a CustomResourceDefinition with this number of further versions."""
    fields = json.loads(json.dumps(REQUEST_BODIES[DEFINITIONS]))
    fields["spec"]["versions"] += many(version)
    return DEFINITIONS, fields


def many(one: Any) -> list[Any]:
    """Return a list of as many copies of a value as fit into a body."""
    return [one] * (SIZE // (len(json.dumps(one, separators=(",", ":"))) + 1))


def properties(one: dict[str, Any]) -> dict[str, Any]:
    """Return an object with as many fields as fit into a body."""
    return {f"k{at}": one for at, one in enumerate(many(one)[: SIZE // (len(json.dumps(one)) + 8)])}


def owners(owner: dict[str, Any] | None) -> tuple[str, dict[str, Any]]:
    """Return a namespace with this number of owner references."""
    fields = json.loads(json.dumps(REQUEST_BODIES["/api/v1/namespaces"]))
    fields["metadata"]["ownerReferences"] = many(owner)
    return "/api/v1/namespaces", fields


def spec(resource: str, **fields: Any) -> tuple[str, dict[str, Any]]:
    """Return an object with these additional fields in its spec."""
    path = next(each for each in REQUEST_BODIES if each.endswith(f"/{resource}"))
    made = json.loads(json.dumps(REQUEST_BODIES[path]))
    made["spec"].update(fields)
    return path, made


BODIES: dict[str, Callable[[], tuple[str, dict[str, Any]]]] = {
    "schemas that say nothing": lambda: schema({"allOf": many({})}),
    "schemas that are null": lambda: schema({"anyOf": many(None)}),
    "schemas that negate nothing": lambda: schema({"oneOf": many({"not": {}})}),
    "schemas that are refused": lambda: schema({"allOf": many({"type": "x"})}),
    "schemas of items": lambda: schema({"allOf": many({"items": {}})}),
    "fields": lambda: schema({"properties": properties({"type": "string"})}),
    "fields with defaults": lambda: schema({"properties": properties({"type": "object", "default": {}})}),
    "fields that are lists": lambda: schema({"properties": properties({"type": "array", "items": {"type": "string"}})}),
    "versions that say nothing": lambda: versions({}),
    "versions that are null": lambda: versions(None),
    "versions without names": lambda: versions({"schema": {"openAPIV3Schema": {}}}),
    "families of a service": lambda: spec("services", ipFamilies=many("a")),
    "owners that say nothing": lambda: owners({}),
    "owners that are null": lambda: owners(None),
    "containers": lambda: spec("pods", containers=many({})),
    "containers that are null": lambda: spec("pods", containers=many(None)),
    "containers of a template": lambda: spec("statefulsets", template={"spec": {"containers": many({})}}),
}


def excepted(networks: list[str], whole: str) -> tuple[str, dict[str, Any]]:
    """Return a NetworkPolicy with these exceptions from an IP network."""
    peers = [{"from": [{"ipBlock": {"cidr": whole, "except": networks}}]}]
    return spec("networkpolicies", ingress=peers)


def schedule(minutes: list[str]) -> tuple[str, dict[str, Any]]:
    """Return a CronJob whose schedule has this string for the minutes."""
    template = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "x"}], "restartPolicy": "Never"}}}}
    fields = {"schedule": f"{','.join(minutes)} * * * *", "jobTemplate": template}
    return "/apis/batch/v1/namespaces/attack/cronjobs", {"metadata": {"name": "a"}, "spec": fields}


NUMBERS: dict[str, Callable[[], tuple[str, dict[str, Any]]]] = {
    "networks of IPv4": lambda: excepted([f"10.{at >> 8}.{at & 255}.0/24" for at in range(3_500)], "10.0.0.0/8"),
    "networks of IPv6": lambda: excepted([f"fd00:{at:x}::/32" for at in range(3_500)], "fd00::/16"),
    "minutes": lambda: schedule([str(at % 60) for at in range(20_000)]),
    "spans of minutes": lambda: schedule([f"{a}-{b}" for a in range(60) for b in range(a, 60)] * 5),
    "ports": lambda: spec("services", ports=[{"port": at + 1, "name": f"a{at}"} for at in range(2_000)]),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_a_byte_of_a_list_of_numbers_costs_less(name: str) -> None:
    path, fields = NUMBERS[name]()
    body = json.dumps(fields, separators=(",", ":")).encode()
    assert len(body) > SIZE * 0.7

    def send() -> None:
        assert STAGE.send("POST", path, body, query={"dryRun": "All"}).code == 201

    send()
    assert 0 < calls(send) / len(body) <= MOST_OF_NUMBERS


@pytest.mark.parametrize("name", BODIES)
def test_the_cost_per_byte_is_bounded(name: str) -> None:
    path, fields = BODIES[name]()
    body = json.dumps(fields, separators=(",", ":")).encode()
    assert len(body) > SIZE * 0.8

    def send() -> None:
        STAGE.send("POST", path, body, query={"dryRun": "All"})

    send()  # work that is done once, and whose result is kept
    assert 0 < calls(send) / len(body) <= MOST

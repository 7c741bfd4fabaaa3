"""What a body costs the processor for each of its bytes, where it is made of as many elements as there is room for.

The measure is not a second, of which a busy machine has fewer, but a step: what a loop of Python takes to look one key
up. A machine on which a step takes 20 ns spends a second on a megabyte at 50 steps a byte.
"""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from ctrlmgr.interpreter import collector_paused
from tests.engine.stage import Stage
from tests.robustness.attack.siege import SPECIMENS

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SIZE = 60_000
MOST = 75.0
"""Steps that a byte may cost: twice what the dearest of these bodies do, for neighbours spoil caches that a step is not
in need of."""

_STEPS = 200_000
_TRIES = 3

STAGE = Stage()
STAGE.namespace("attack")


def schema(schema: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return a definition with this schema."""
    fields = json.loads(json.dumps(SPECIMENS[DEFINITIONS]))
    fields["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = {"type": "object", **schema}
    return DEFINITIONS, fields


def versions(version: dict[str, Any] | None) -> tuple[str, dict[str, Any]]:
    """Return a definition with so many more versions like this."""
    fields = json.loads(json.dumps(SPECIMENS[DEFINITIONS]))
    fields["spec"]["versions"] += many(version)
    return DEFINITIONS, fields


def many(one: Any) -> list[Any]:
    """Return as many of it as there is room for."""
    return [one] * (SIZE // (len(json.dumps(one, separators=(",", ":"))) + 1))


def properties(one: dict[str, Any]) -> dict[str, Any]:
    """Return as many fields of an object as there is room for."""
    return {f"k{at}": one for at, one in enumerate(many(one)[: SIZE // (len(json.dumps(one)) + 8)])}


def spec(resource: str, **fields: Any) -> tuple[str, dict[str, Any]]:
    """Return an object whose spec has these fields besides."""
    path = next(each for each in SPECIMENS if each.endswith(f"/{resource}"))
    made = json.loads(json.dumps(SPECIMENS[path]))
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
    "containers": lambda: spec("pods", containers=many({})),
    "containers that are null": lambda: spec("pods", containers=many(None)),
    "containers of a template": lambda: spec("statefulsets", template={"spec": {"containers": many({})}}),
}


@pytest.mark.parametrize("name", BODIES)
def test_a_byte_costs_so_much_and_no_more(name: str) -> None:
    path, fields = BODIES[name]()
    body = json.dumps(fields, separators=(",", ":")).encode()
    assert len(body) > SIZE * 0.8
    price = seconds(lambda: STAGE.send("POST", path, body, query={"dryRun": "All"})) / len(body)
    assert price / step() <= MOST


def step() -> float:
    """Return what a step takes."""

    def walk() -> None:
        fields = {"a": 1}
        for _ in range(_STEPS):
            fields.get("a")

    return seconds(walk) / _STEPS


def seconds(work: Callable[[], object]) -> float:
    """Return what work costs the processor, the least of some tries.

    As in a server that works on a large body, the cycle collector is off meanwhile: it would look at all that this
    process has come to hold.
    """
    least = float("inf")
    for _ in range(_TRIES):
        gc.collect()
        with collector_paused():
            began = time.thread_time()
            work()
            least = min(least, time.thread_time() - began)
    return least

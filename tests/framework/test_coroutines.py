"""Tests of controllers, cleanups and daemons that are async functions; all of them share one event loop."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import AsyncIterator
from contextvars import ContextVar

import pytest

from ctrlmgr import App, Context, Kind, Metadata, Model, Result, Status
from ctrlmgr.framework.coroutines import blocking
from ctrlmgr.testing import Harness


class LampSpec(Model):
    bulbs: int = 1


class LampStatus(Status):
    lit: int = 0


class Lamp(Kind, api_version="example.com/v1"):
    spec: LampSpec = LampSpec()
    status: LampStatus = LampStatus()


class ConfigMap(Kind, api_version="v1"):
    data: dict[str, str] = {}


def lamp(name: str = "desk", bulbs: int = 2) -> Lamp:
    return Lamp(metadata=Metadata(name=name), spec=LampSpec(bulbs=bulbs))


def test_an_async_reconcile_writes_its_children_and_its_status() -> None:
    app, told = App("lamps"), list[str]()

    @app.controller(Lamp, owns=[ConfigMap])
    async def lamps(lamp: Lamp, context: Context) -> Result | None:
        lit = await asyncio.gather(*(bulb(number) for number in range(lamp.spec.bulbs)))
        await asyncio.to_thread(context.apply, ConfigMap(metadata=Metadata(name=lamp.name), data={"lit": str(lit)}))
        lamp.status.lit = len(lit)
        return Result(requeue_after=60) if not told else None

    async def bulb(number: int) -> int:
        await asyncio.sleep(0)
        return number

    @lamps.finalize("example.com/lamp")
    async def cleanup(lamp: Lamp, context: Context) -> None:
        await asyncio.sleep(0)
        told.append(f"{lamp.name} is off")

    cluster = Harness(app)
    cluster.create(lamp())
    cluster.settle()
    assert [each.data for each in cluster.list(ConfigMap)] == [{"lit": "[0, 1]"}]
    assert [each.status.lit for each in cluster.list(Lamp)] == [2]
    cluster.delete(Lamp, "desk")
    cluster.settle()
    assert told == ["desk is off"]
    assert cluster.list(Lamp) == []


def test_an_error_of_an_async_reconcile_is_retried() -> None:
    app, times = App("lamps"), list[int]()

    @app.controller(Lamp)
    async def lamps(lamp: Lamp, context: Context) -> None:
        times.append(1)
        await asyncio.sleep(0)
        if len(times) == 1:
            raise ValueError("no current")
        if len(times) == 2:
            sys.exit("no lamp")

    cluster = Harness(app, strict=False)
    cluster.create(lamp())
    cluster.advance(1)
    assert [str(error) for _, _, error in cluster.errors] == ["no current", "the controller called sys.exit('no lamp')"]
    assert len(times) > 2, "sys.exit() has ended the loop"


def test_a_daemon_can_be_an_async_generator() -> None:
    app, told = App("lamps"), list[str]()

    @app.daemon(Lamp)
    async def blink(lamp: Lamp, context: Context) -> AsyncIterator[float]:
        try:
            while True:
                await asyncio.sleep(0)
                told.append(f"{lamp.spec.bulbs} bulbs")
                lamp = yield 10  # type: ignore[assignment]  # an AsyncIterator has no type for what is sent
        finally:
            await asyncio.sleep(0)
            told.append("off")

    cluster = Harness(app)
    cluster.create(lamp())
    cluster.advance(15)
    cluster.patch(Lamp, "desk", {"spec": {"bulbs": 5}})
    cluster.advance(10)
    cluster.delete(Lamp, "desk")
    cluster.settle()
    assert told == ["2 bulbs", "2 bulbs", "5 bulbs", "off"]


NAME: ContextVar[str] = ContextVar("NAME")


def test_functions_share_one_loop_and_the_callers_context() -> None:
    async def look() -> tuple[int, int, str]:
        return id(asyncio.get_running_loop()), threading.get_ident(), NAME.get()

    NAME.set("desk")
    first, second = blocking(look)(), blocking(look)()
    assert first == second
    assert first[1] != threading.get_ident()
    assert first[2] == "desk"


def test_a_plain_function_is_called_directly() -> None:
    assert blocking(lamp) is lamp


def test_an_async_admission_function_is_refused_with_advice() -> None:
    app = App("lamps")
    with pytest.raises(TypeError, match=r"limit is an async function, but a write waits for it: write `def`"):

        @app.admission(Lamp)  # type: ignore[arg-type]  # that is what it refuses
        async def limit(lamp: Lamp, write: object) -> None: ...

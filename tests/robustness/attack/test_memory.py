"""Tests that the server keeps no client data in memory: neither the last body, nor its content, nor invented names."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
import weakref
from collections.abc import Callable, Coroutine
from contextlib import suppress

import pytest

from ctrlmgr.api.quantity import canonical
from ctrlmgr.api.resource import Resource, guess_resource
from ctrlmgr.api.timestamp import canonical_time
from ctrlmgr.controllers.workloads.hashes import template_hash
from ctrlmgr.engine.managedfields import path_element
from ctrlmgr.engine.selectors import LabelSelector
from ctrlmgr.engine.validation.ip_validation import is_usual, parse_ip
from ctrlmgr.engine.validation.name_formats import dns1123_label
from ctrlmgr.errors import BadRequest, NotAcceptable
from ctrlmgr.http.framing import beginning
from ctrlmgr.kinds.core.pod.image_name import pull_policy
from ctrlmgr.regexp import compiled
from ctrlmgr.server.authn.token_file import _digest
from ctrlmgr.server.describe.document import choose
from ctrlmgr.server.presenting.negotiation import Accepts
from ctrlmgr.server.request import parse_query
from ctrlmgr.server.workers import Workers

LONG = 20_000


class Body:
    """Something large."""


def kept_after(run: Callable[[Callable[[], int]], Coroutine[object, object, int]]) -> bool:
    """Return whether finished work still references the object that it worked on."""

    async def main() -> bool:
        body = Body()
        kept = weakref.ref(body)
        assert await run(lambda body=body: id(body)) == id(body)  # type: ignore[misc]  # binds it
        del body
        for _ in range(1000):
            if kept() is None:
                return False
            await asyncio.sleep(0.005)
        return True

    return asyncio.run(main())


def test_a_thread_releases_its_last_object() -> None:
    workers = Workers(1)

    async def run(call: Callable[[], int]) -> int:
        workers.start()
        return await workers.run(call)

    try:
        assert not kept_after(run)
    finally:
        workers.stop()


REMEMBERING: dict[str, Callable[[str], object]] = {
    "patterns": compiled,
    "kinds": lambda text: guess_resource("v1", text),
    "versions": lambda text: guess_resource(text, "Pod"),
    "resources": Resource.parse,
    "addresses": parse_ip,
    "addresses in lists": is_usual,
    "names": dns1123_label,
    "images": pull_policy,
    "quantities": lambda text: canonical(f"1{text}"),
    "times": canonical_time,
    "selectors": LabelSelector.parse,
    "tokens": _digest,
    "elements": lambda text: path_element.order(f'v:"{text}"'),
    "templates": lambda text: template_hash({"metadata": {"labels": {"a": text}}}, None),
}


@pytest.mark.parametrize("name", REMEMBERING)
def test_long_texts_are_not_cached(name: str) -> None:
    def twice(number: int) -> None:
        for _ in range(2):
            with suppress(ValueError, BadRequest):
                REMEMBERING[name](f"a{number}" + "a" * LONG)

    assert left_by(twice) < LONG


def test_headers_with_many_warnings_are_not_cached() -> None:
    def answer(number: int) -> None:
        many = [(b"warning", b'299 - "%d %d"' % (each, number)) for each in range(LONG // 100)]
        beginning(200, (b"date", b"now"), many, keep_alive=True, chunked=False)

    assert left_by(answer) < LONG


def left_by(call: Callable[[int], object]) -> int:
    """Return the bytes that remain allocated after a function was called several times."""
    with suppress(ValueError, BadRequest):
        call(-1)  # data that the function creates once
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for number in range(10):
            with suppress(ValueError, BadRequest):
                call(number)
        gc.collect()
        return tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()


def accepted(header: bytes) -> object:
    return Accepts().negotiate(header)


MADE_UP: dict[str, tuple[Callable[[bytes], object], bytes]] = {
    "alternatives": (accepted, b"*/*;q=0.1," * 80_000),
    "alternatives that differ": (accepted, b",".join([b"a/%d" % number for number in range(100_000)])),
    "parameters of an alternative": (accepted, b"*/*" + b";a=b" * 200_000),
    "alternatives of a document": (lambda header: choose(header.decode(), ["a/b"]), b"a/c;d=e," * 100_000),
    "parameters of a query": (parse_query, b"&".join([b"a%d=b" % number for number in range(100_000)])),
}


@pytest.mark.parametrize("name", MADE_UP)
def test_endpoints_without_a_body_limit_expansion(name: str) -> None:
    """The server decodes the body on a thread for which other threads wait, and stores it among permanent objects in
    memory.
    """
    read, header = MADE_UP[name]
    tracemalloc.start()
    try:
        with suppress(NotAcceptable):
            read(header)
        assert tracemalloc.get_traced_memory()[1] < 3 * len(header) + 1_000_000
    finally:
        tracemalloc.stop()

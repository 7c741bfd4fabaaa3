"""Runs a function on another thread and returns its result, with a deadline."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from ctrlmgr import threads

T = TypeVar("T")

DEADLINE = 30.0
"""Seconds of real time after which a waiting thread is considered to hang."""


def background(target: Callable[[], T]) -> Future[T]:
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(target())
        except BaseException as error:
            future.set_exception(error)

    threads.start("background", run)
    return future

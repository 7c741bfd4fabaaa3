"""Turning objects from one version into another where only another process knows how.

Guarantees:
- Code that decides stays free of waiting: it asks for a conversion (`asked`) and gets it, if it is known; if not, it
  is left off (`Unconverted`), the hook is called, and the code runs again from its beginning, as it would have run.
- What a hook answered is known to the piece of work that asked, and to no other; a kind's reader remembers more, as it
  decides, and never a failure.
- Objects that are asked for together are sent together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol, TypeAlias, TypeVar

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.calls.call import Calling, Surroundings
from ctrlmgr.engine.kind import Kind
from ctrlmgr.errors import ConversionFailed, UnknownError

T = TypeVar("T")

_BATCH = 100
"""How many objects are sent in one call."""

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, Any]).decode


Converted: TypeAlias = Unstructured | ConversionFailed


class Way(Protocol):
    """The way from one version of a kind to another; compared by identity, and the same as long as its definition."""

    def convert(self, objects: Sequence[Unstructured], around: Surroundings) -> Calling[Sequence[Converted]]:
        """Return what the hook makes of each object."""


class Unconverted(UnknownError):
    """What was asked for has to be converted first; seen only where the hook cannot be called."""

    def __init__(self, way: Way, body: bytes) -> None:
        """Say what is to go which way."""
        super().__init__(
            "the object is stored in another version, and its conversion webhook cannot be called from here"
        )
        self.way = way
        self.body = body


class _Answers:
    """What one piece of work knows by now."""

    def __init__(self, *, anew: bool) -> None:
        self.anew = anew
        self._known: dict[tuple[Way, bytes], bytes | ConversionFailed] = {}

    def find(self, way: Way, body: bytes) -> bytes | ConversionFailed | None:
        return self._known.get((way, body))

    def gather(self, missing: Iterable[Unconverted], around: Surroundings) -> Calling[None]:
        """Have everything converted that is missing, what goes the same way together."""
        ways: dict[Way, dict[bytes, None]] = {}
        for each in missing:
            ways.setdefault(each.way, {})[each.body] = None
        for way, bodies in ways.items():
            pending = list(bodies)
            for start in range(0, len(pending), _BATCH):
                batch = pending[start : start + _BATCH]
                results = yield from way.convert([_decode(body) for body in batch], around)
                for body, result in zip(batch, results, strict=True):
                    self._known[way, body] = result if isinstance(result, ConversionFailed) else _encode(result)


_answers: ContextVar[_Answers | None] = ContextVar("answers", default=None)


@contextmanager
def _knowing(answers: _Answers) -> Iterator[None]:
    token = _answers.set(answers)
    try:
        yield
    finally:
        _answers.reset(token)


def asked(way: Way, fields: Unstructured) -> Unstructured:
    """Return what an object is on the other end of a way, as dicts of its own.

    Raises `Unconverted` if the hook has not been asked yet, and `ConversionFailed`.
    """
    body, answers = _encode(fields), _answers.get()
    found = answers.find(way, body) if answers is not None else None
    if found is None:
        raise Unconverted(way, body)
    if isinstance(found, ConversionFailed):
        raise found
    converted: Unstructured = _decode(found)
    return converted


def is_anew() -> bool:
    """Say whether what was remembered from earlier work must not be used."""
    answers = _answers.get()
    return answers is not None and answers.anew


def converting(call: Callable[[], T], around: Surroundings, *, anew: bool = False) -> Calling[T]:
    """Return what `call` returns, or raise what it raises, once all that it asks for has been converted.

    It is called again after each conversion and must not mind. With `anew` nothing is used that was remembered.
    """
    answers = _Answers(anew=anew)
    while True:
        try:
            with _knowing(answers):
                return call()
        except Unconverted as error:
            missing = error
        yield from answers.gather([missing], around)


def shown(kind: Kind, obj: Object, around: Surroundings, *, anew: bool = False) -> Calling[Object]:
    """Return a stored object in a kind's version; raises `ConversionFailed`."""
    show = kind.from_storage
    if show is None:
        return obj
    return (yield from converting(lambda: show(obj), around, anew=anew))


def shown_all(kind: Kind, objects: Iterable[Object], around: Surroundings) -> Calling[list[Object]]:
    """Return stored objects in a kind's version, converting together what has to be; raises `ConversionFailed`."""
    show = kind.from_storage
    found = list(objects)
    if show is None:
        return found
    answers = _Answers(anew=False)
    while True:  # what was remembered may have been forgotten while the hook was asked for the rest
        result, missing = list[Object](), list[Unconverted]()
        with _knowing(answers):
            for obj in found:
                try:
                    result.append(show(obj))
                except Unconverted as error:
                    missing.append(error)
        if not missing:
            return result
        yield from answers.gather(missing, around)

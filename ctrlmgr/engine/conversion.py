"""Converts objects between API versions by calling a conversion webhook.

Guarantees:
- The function that decides a write never waits for a conversion. The function calls `asked`, which returns the
  converted object if the webhook has already converted it. If the webhook has not converted the object yet, `asked`
  raises `Unconverted`. After the function has raised the error, `converting` calls the webhook and runs the function
  again from its beginning.
- An operation does not reuse the webhook's answers to other operations. A kind's reader may cache converted objects
  across operations, but it never caches a failure.
- Objects that need the same conversion are sent together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol, TypeAlias, TypeVar

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.calls.call import Calling, CallInputs
from ctrlmgr.engine.kind import Kind
from ctrlmgr.errors import ConversionFailed, UnknownError

T = TypeVar("T")

_BATCH = 100
"""The maximum number of objects in one call of a conversion webhook."""

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict[str, Any]).decode


Converted: TypeAlias = Unstructured | ConversionFailed


class ConversionRoute(Protocol):
    """A conversion from one version of a kind to another.

    Routes are compared by identity; a CustomResourceDefinition always returns the same object for a route.
    """

    def convert(self, objects: Sequence[Unstructured], inputs: CallInputs) -> Calling[Sequence[Converted]]:
        """Return the webhook's result for each object: the converted object, or the failure."""


class Unconverted(UnknownError):
    """Raised if an object must be converted first.

    Code outside of this module gets this error only if it cannot call the webhook.
    """

    def __init__(self, way: ConversionRoute, body: bytes) -> None:
        """Create the error for the conversion of the object with this body."""
        super().__init__(
            "the object is stored in another version, and its conversion webhook cannot be called from here"
        )
        self.way = way
        self.body = body


class _Answers:
    """The converted objects that one operation has received so far."""

    def __init__(self, *, anew: bool) -> None:
        self.anew = anew
        self._known: dict[tuple[ConversionRoute, bytes], bytes | ConversionFailed] = {}

    def find(self, way: ConversionRoute, body: bytes) -> bytes | ConversionFailed | None:
        return self._known.get((way, body))

    def gather(self, missing: Iterable[Unconverted], inputs: CallInputs) -> Calling[None]:
        """Convert all missing objects; objects with the same route share calls of the webhook."""
        ways: dict[ConversionRoute, dict[bytes, None]] = {}
        for each in missing:
            ways.setdefault(each.way, {})[each.body] = None
        for way, bodies in ways.items():
            pending = list(bodies)
            for start in range(0, len(pending), _BATCH):
                batch = pending[start : start + _BATCH]
                results = yield from way.convert([_decode(body) for body in batch], inputs)
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


def asked(way: ConversionRoute, fields: Unstructured) -> Unstructured:
    """Return the converted object as new dicts, which the caller may change.

    Raises `Unconverted` if the webhook has not been called yet, and `ConversionFailed` if the conversion failed.
    """
    body, answers = _encode(fields), _answers.get()
    found = answers.find(way, body) if answers is not None else None
    if found is None:
        raise Unconverted(way, body)
    if isinstance(found, ConversionFailed):
        raise found
    converted: Unstructured = _decode(found)
    return converted


def bypasses_cache() -> bool:
    """Return whether cached conversions of earlier operations must not be used."""
    answers = _answers.get()
    return answers is not None and answers.anew


def converting(call: Callable[[], T], inputs: CallInputs, *, anew: bool = False) -> Calling[T]:
    """Run `call` until all conversions that it needs are known, then return its result or raise its error.

    `call` runs again after each conversion, so `call` must have no side effects. If `anew` is set, cached conversions
    are not used.
    """
    answers = _Answers(anew=anew)
    while True:
        try:
            with _knowing(answers):
                return call()
        except Unconverted as error:
            missing = error
        yield from answers.gather([missing], inputs)


def shown(kind: Kind, obj: Object, inputs: CallInputs, *, anew: bool = False) -> Calling[Object]:
    """Return a stored object in the version of `kind`.

    Raises `ConversionFailed` if the webhook cannot convert the object.
    """
    show = kind.from_storage
    if show is None:
        return obj
    return (yield from converting(lambda: show(obj), inputs, anew=anew))


def shown_all(kind: Kind, objects: Iterable[Object], inputs: CallInputs) -> Calling[list[Object]]:
    """Return stored objects in the version of `kind`; all conversions share calls of the webhook.

    Raises `ConversionFailed`.
    """
    show = kind.from_storage
    found = list(objects)
    if show is None:
        return found
    answers = _Answers(anew=False)
    while True:  # a cached conversion may be evicted while the webhook converts the others
        result, missing = list[Object](), list[Unconverted]()
        with _knowing(answers):
            for obj in found:
                try:
                    result.append(show(obj))
                except Unconverted as error:
                    missing.append(error)
        if not missing:
            return result
        yield from answers.gather(missing, inputs)

"""Conversion of large objects slice by slice, so that others get the interpreter in between.

msgspec converts an object in one call, and no other thread runs meanwhile: a quarter of a second for half a million
elements. It also makes a Struct of each, all of them at a time, which is a hundred times the size of the body.

Guarantees: what comes out is what one call would have made of it; `fields` are as they were when it returns or raises.
Only lists and maps are cut, those that are long and whose elements are made of something; a body that is large in
another way (a list of very large elements) is converted in larger slices.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any, NamedTuple

import msgspec

from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.caches.memoized import request_scoped_memo
from ctrlmgr.schema.schema import Schema
from ctrlmgr.schema.structs import Structs, attribute, read_value, write_value

LONG = 1024
"""A list or map of more elements is cut."""
_SLICE = 128
"""Elements of a slice."""

_NESTS = (dict, list)

_encode = msgspec.json.Encoder(order="deterministic").encode


class _Wanted(threading.local):
    """Whether this thread converts in slices."""

    now = False


_wanted = _Wanted()


@contextmanager
def wanted() -> Iterator[None]:
    """Have this thread convert in slices meanwhile, and remember no longer what it comes by."""
    before, _wanted.now = _wanted.now, True
    try:
        with request_scoped_memo():
            yield
    finally:
        _wanted.now = before


def are_wanted() -> bool:
    """Say whether this thread is to convert in slices."""
    return _wanted.now


class _Cut(NamedTuple):
    """A long list or map, and where it is."""

    way: tuple[str | int, ...]
    """The steps to what holds it, from the object on."""
    holder: Any
    key: Any
    whole: Any
    schema: Schema

    def slices(self) -> Iterator[Any]:
        """Yield its elements, as lists or maps of some."""
        if isinstance(self.whole, list):
            for start in range(0, len(self.whole), _SLICE):
                yield self.whole[start : start + _SLICE]
        else:
            names = iter(sorted(self.whole))  # as they are written
            while some := list(islice(names, _SLICE)):
                yield {name: self.whole[name] for name in some}

    def one(self) -> Any:
        """Return a list or map of one element, in its place while the rest is converted."""
        return self.whole[:1] if isinstance(self.whole, list) else dict(islice(self.whole.items(), 1))


def shaped(fields: Unstructured, schema: Schema, structs: Structs) -> Unstructured:
    """Return an object in the shape of its Struct; raises `msgspec.ValidationError` for what does not fit."""
    cuts = _cuts_of(schema, fields)
    with _taken_out(cuts):
        result: Unstructured = msgspec.to_builtins(msgspec.convert(fields, structs.of(schema), dec_hook=read_value))
    for cut in cuts:
        type_ = structs.type_of(cut.schema)
        parts = (msgspec.to_builtins(msgspec.convert(each, type_, dec_hook=read_value)) for each in cut.slices())
        holder: Any = result
        for step in cut.way:
            holder = holder[step]
        holder[cut.key] = _joined(cut, parts)
    return result


def _joined(cut: _Cut, parts: Iterator[Any]) -> Any:
    if isinstance(cut.whole, list):
        return [element for part in parts for element in part]
    found = {name: element for part in parts for name, element in part.items()}
    return {name: found[name] for name in cut.whole}


def struct_of(fields: Unstructured, schema: Schema, structs: Structs) -> msgspec.Struct:
    """Return the Struct to write of an object, with long lists and maps written; raises as `shaped` does."""
    cuts = _cuts_of(schema, fields)
    with _taken_out(cuts):
        struct = msgspec.convert(fields, structs.of(schema), dec_hook=write_value)
    for cut in cuts:
        type_ = structs.type_of(cut.schema)
        parts = [_encode(msgspec.convert(each, type_, dec_hook=write_value)) for each in cut.slices()]
        start, end = parts[0][:1], parts[0][-1:]
        _put(struct, schema, cut, msgspec.Raw(start + b",".join([each[1:-1] for each in parts]) + end))
    return struct


def _put(struct: Any, schema: Schema, cut: _Cut, written: msgspec.Raw) -> None:
    """Put what was written of a list or map into its place."""
    holder, at = struct, schema
    for step in cut.way:
        holder, at = _below(holder, at, step)
    if at.is_struct:
        setattr(holder, attribute(at, cut.key), written)
    else:
        holder[cut.key] = written


def _below(holder: Any, schema: Schema, step: str | int) -> tuple[Any, Schema]:
    if schema.is_struct and isinstance(step, str):
        return getattr(holder, attribute(schema, step)), schema.properties[step]
    below = schema.items or schema.values
    assert below is not None  # there is a way through it
    return holder[step], below


@contextmanager
def _taken_out(cuts: Sequence[_Cut]) -> Iterator[None]:
    """Have one element in the place of each meanwhile."""
    for cut in cuts:
        cut.holder[cut.key] = cut.one()
    try:
        yield
    finally:
        for cut in cuts:
            cut.holder[cut.key] = cut.whole


def _cuts_of(schema: Schema, fields: Unstructured) -> list[_Cut]:
    """Return the long lists and maps of an object; there are none in what is not plainly of its schema's shape."""
    found: list[_Cut] = []
    if type(fields) is dict:
        _look_into(schema, fields, (), found.append)
    return found


def _look_into(
    schema: Schema, fields: dict[str, Any], way: tuple[str | int, ...], tell: Callable[[_Cut], None]
) -> None:
    """Look at the fields of a struct."""
    properties = schema.properties
    for name, value in fields.items():
        if value and type(value) in _NESTS and (below := properties.get(name)) is not None:
            _look_at(below, fields, name, way, tell)


def _look_at(schema: Schema, holder: Any, key: Any, way: tuple[str | int, ...], tell: Callable[[_Cut], None]) -> None:
    value = holder[key]
    if schema.is_struct:
        if type(value) is dict:
            _look_into(schema, value, (*way, key), tell)
        return
    below = schema.items if type(value) is list else schema.values
    if below is None or not (below.is_struct or below.items or below.values):
        return
    if len(value) > LONG:
        tell(_Cut(way, holder, key, value, schema))
        return
    for step, each in enumerate(value) if type(value) is list else value.items():
        if each and type(each) in _NESTS:
            _look_at(below, value, step, (*way, key), tell)

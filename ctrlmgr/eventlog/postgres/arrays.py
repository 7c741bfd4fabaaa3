"""Encodes array parameters in PostgreSQL's binary format, each array in one step.

The library psycopg converts arrays element by element. For a group of appends, that conversion takes longer than the
database's work. The format is a header with the dimensions, then the length and the bytes of each element (`array_recv`
in PostgreSQL's arrayfuncs.c). Elements of the encoded arrays are never null.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from psycopg import Connection
from psycopg.adapt import Dumper
from psycopg.pq import Format

# The header: number of dimensions, whether elements may be null, element type, length, first subscript.
_HEADER = struct.Struct(">iiiii")
_EMPTY = struct.Struct(">iii")
_length = struct.Struct(">i").pack


class PackedArray:
    """An encoded array; each subclass represents one array type of PostgreSQL."""

    __slots__ = ("packed",)

    def __init__(self, packed: bytes) -> None:
        """Create a wrapper for an array that is already in PostgreSQL's binary format."""
        self.packed = packed


class BigintArray(PackedArray):
    """`bigint[]`."""

    __slots__ = ()

    @classmethod
    def of(cls, values: Sequence[int]) -> BigintArray:
        """Pack integers of up to 64 bits."""
        return cls(_fixed("q", 8, 20, values))


class IntegerArray(PackedArray):
    """`integer[]`."""

    __slots__ = ()

    @classmethod
    def of(cls, values: Sequence[int]) -> IntegerArray:
        """Pack integers of up to 32 bits."""
        return cls(_fixed("i", 4, 23, values))


class BooleanArray(PackedArray):
    """`boolean[]`."""

    __slots__ = ()

    @classmethod
    def of(cls, values: Sequence[bool]) -> BooleanArray:
        """Encode booleans as a PostgreSQL array."""
        return cls(_fixed("?", 1, 16, values))


class TextArray(PackedArray):
    """`text[]`."""

    __slots__ = ()

    @classmethod
    def of(cls, values: Sequence[bytes]) -> TextArray:
        """Encode strings as a PostgreSQL array of texts."""
        return cls(_variable(25, values))


class ByteaArray(PackedArray):
    """`bytea[]`."""

    __slots__ = ()

    @classmethod
    def of(cls, values: Sequence[bytes]) -> ByteaArray:
        """Encode byte strings as a PostgreSQL array."""
        return cls(_variable(17, values))


def _fixed(code: str, size: int, element: int, values: Sequence[int]) -> bytes:
    if not values:
        return _EMPTY.pack(0, 0, element)
    flat = [size] * (2 * len(values))
    flat[1::2] = values
    return _HEADER.pack(1, 0, element, len(values), 1) + struct.pack(">" + f"i{code}" * len(values), *flat)


def _variable(element: int, values: Sequence[bytes]) -> bytes:
    if not values:
        return _EMPTY.pack(0, 0, element)
    header = _HEADER.pack(1, 0, element, len(values), 1)
    first = values[0]
    if values.count(first) == len(values):  # in arrays of actors or namespaces, all elements are often equal
        return header + (_length(len(first)) + first) * len(values)
    parts = [header]
    for value in values:
        parts += _length(len(value)), value
    return b"".join(parts)


class _Packed(Dumper):
    format = Format.BINARY

    def dump(self, obj: PackedArray) -> bytes:
        return obj.packed


def register(connection: Connection) -> None:
    """Register dumpers on a connection that send packed arrays unchanged, as `%b` parameters."""
    for array, oid in (
        (BigintArray, 1016),
        (IntegerArray, 1007),
        (BooleanArray, 1000),
        (TextArray, 1009),
        (ByteaArray, 1001),
    ):
        connection.adapters.register_dumper(array, type(f"{array.__name__}Dumper", (_Packed,), {"oid": oid}))

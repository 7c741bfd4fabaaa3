"""Protobuf's wire format: reads variable-length integers, skips unknown fields, and writes fields.

Guarantees: no byte of the body at or after `end` is read. Truncated, overlong or too deeply nested input raises
`BadRequest` with gogo/protobuf's message, which Kubernetes returns.

The arguments of every function that reads are the whole body and positions in the body. Slices would copy nested
messages.
"""

from __future__ import annotations

from ctrlmgr.errors import BadRequest

VARINT, FIXED64, LENGTH, GROUP, END_GROUP, FIXED32 = range(6)
DEEPEST = 64
"""The maximum nesting depth of protobuf messages.

Kubernetes' own kinds need about a dozen levels; schemas in custom resource definitions need more.
"""

_FIXED_SIZE = {FIXED64: 8, FIXED32: 4}


def truncated() -> BadRequest:
    """Return the error for a truncated body."""
    return BadRequest("unexpected EOF")


def varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    """Read an unsigned 64-bit integer; return the integer and the position after it."""
    if at < end and data[at] < 0x80:  # the common case: the integer is a length or another small number
        return data[at], at + 1
    value = shift = 0
    for position in range(at, min(end, at + 10)):
        byte = data[position]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, position + 1
        shift += 7
    raise BadRequest("proto: integer overflow") if shift == 70 else truncated()


def extent(data: bytes, at: int, end: int) -> tuple[int, int]:
    """Read a length prefix; return the start and the end of the value, both at most `end`."""
    if at < end and data[at] < 0x80:
        size, at = data[at], at + 1
    else:
        size, at = varint(data, at, end)
    if size > end - at:
        raise BadRequest("proto: negative length found during unmarshaling") if size >> 63 else truncated()
    return at, at + size


def skip(tag: int, data: bytes, at: int, end: int, message: str) -> int:
    """Return the position after the value of the unknown field `tag` of `message`."""
    number, wire = tag >> 3, tag & 7
    if wire == END_GROUP:
        raise BadRequest(f"proto: {message}: wiretype end group for non-group")
    if not 0 < number < 1 << 29:
        raise BadRequest(f"proto: {message}: illegal tag {number} (wire type {wire})")
    return _skip_group(data, at, end) if wire == GROUP else _skip_value(wire, data, at, end)


def _skip_value(wire: int, data: bytes, at: int, end: int) -> int:
    if wire == VARINT:
        return varint(data, at, end)[1]
    if wire == LENGTH:
        return extent(data, at, end)[1]
    if wire not in _FIXED_SIZE:
        raise BadRequest(f"proto: illegal wireType {wire}")
    at += _FIXED_SIZE[wire]
    if at > end:
        raise truncated()
    return at


def _skip_group(data: bytes, at: int, end: int) -> int:
    depth = 1
    while depth:
        tag, at = varint(data, at, end)
        match tag & 7:
            case 3:
                depth += 1
            case 4:
                depth -= 1
            case wire:
                at = _skip_value(wire, data, at, end)
    return at


def signed32(value: int) -> int:
    """Convert the lower 32 bits of an integer to an int32, as Go does."""
    value &= 0xFFFF_FFFF
    return value - (1 << 32) if value >> 31 else value


def signed64(value: int) -> int:
    """Convert an unsigned integer to an int64."""
    return value - (1 << 64) if value >> 63 else value


def write_number(number: int, value: int) -> bytes:
    """Return the encoded field `number` with an unsigned integer."""
    return _write_varint(number << 3 | VARINT) + _write_varint(value)


def write_part(number: int, content: bytes) -> bytes:
    """Return the encoded field `number` with a string, bytes or another message."""
    return b"".join((_write_varint(number << 3 | LENGTH), _write_varint(len(content)), content))


def write_fixed64(number: int, content: bytes) -> bytes:
    """Return the encoded field `number` with eight bytes: a double, or a fixed-length integer."""
    return _write_varint(number << 3 | FIXED64) + content


def _write_varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)

"""Protobuf's wire format: variable-length integers, stepping over unknown fields, and writing known ones.

Guarantees: nothing past `end` is ever read as if it were there; what is cut off, overlong or nested too deeply is a
`BadRequest` in gogo/protobuf's words, since those are the words in Kubernetes' answers.

Every function that reads takes the whole body and two positions in it, never a slice: nesting costs no copies.
"""

from __future__ import annotations

from ctrlmgr.errors import BadRequest

VARINT, FIXED64, LENGTH, GROUP, END_GROUP, FIXED32 = range(6)
DEEPEST = 64
"""Messages within messages; Kubernetes' own kinds reach about a dozen, schemas in custom resource definitions more."""

_FIXED_SIZE = {FIXED64: 8, FIXED32: 4}


def truncated() -> BadRequest:
    """Return what a body that ends too early is refused with."""
    return BadRequest("unexpected EOF")


def varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    """Read an unsigned 64-bit integer; return it and the position after it."""
    if at < end and data[at] < 0x80:  # nearly all of them: lengths and small numbers
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
    """Read a length; return where what it announces starts and stops, which is not past `end`."""
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
    """Read an integer's lower 32 bits as an int32, as Go does."""
    value &= 0xFFFF_FFFF
    return value - (1 << 32) if value >> 31 else value


def signed64(value: int) -> int:
    """Read an unsigned integer as an int64."""
    return value - (1 << 64) if value >> 63 else value


def write_number(number: int, value: int) -> bytes:
    """Write the field `number` with an unsigned integer."""
    return _write_varint(number << 3 | VARINT) + _write_varint(value)


def write_part(number: int, content: bytes) -> bytes:
    """Write the field `number` with a text, bytes or another message."""
    return b"".join((_write_varint(number << 3 | LENGTH), _write_varint(len(content)), content))


def write_fixed64(number: int, content: bytes) -> bytes:
    """Write the field `number` with eight bytes: a double, or an integer of fixed length."""
    return _write_varint(number << 3 | FIXED64) + content


def _write_varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)

"""Attacks on connections: client certificates, headers in HTTP/1.1, frames in HTTP/2."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from ctrlmgr.http.http2 import frames
from ctrlmgr.http.http2.frames import PREFACE, Setting
from tests.robustness.attack.wire import PING

LONGEST = 900_000
"""The number of bytes of a request header that a server reads at most."""

MOST_STREAMS = 100
_WHOLE = frames.END_STREAM | frames.END_HEADERS
_LIST = "/apis"
"""The path of a request whose response is longer than the client's flow-control window."""


class ConnectionAttack(NamedTuple):
    """One type of attack on connections."""

    name: str
    make: Callable[[int, str], bytes]
    """A function that returns the bytes to send, of about this size, with the caller's credentials in a header."""
    stays: bool = True
    """Whether the client waits for the server's response."""


def certificates(size: int, choice: random.Random) -> tuple[str, bytes]:
    """Return the name of a type of certificate list, and the input for `wire.present`."""
    shape = choice.choice(("self-issued", "self-issued", "chain", "circle", "copies"))
    count = choice.choice((1, 2, 7, 8, 12, 20, 60)) if size > 500 else choice.choice((1, 2, 4))
    return shape, json.dumps({"shape": shape, "count": count}).encode()


# HTTP/1.1.


def _head(line: bytes, *fields: bytes, host: bytes = b"x", who: str = "") -> bytes:
    token = [f"authorization: Bearer {who}".encode()] if who else []
    lines = [line + b" HTTP/1.1", *([b"host: " + host] if host else []), *token, *fields]
    return b"\r\n".join([*lines, b"", b""])


_LAST = b"connection: close"
_POST = b"POST /api/v1/namespaces/attack/configmaps?dryRun=All"
_TYPED = b"content-type: application/json"


def _query(size: int, who: str) -> bytes:
    return _head(b"GET /api/v1/namespaces?a=" + b"%41" * (min(size, LONGEST) // 3), _LAST, who=who)


def _fields(size: int, who: str) -> bytes:
    return _head(b"GET /livez", *(b"x-%d: a" % at for at in range(min(size // 9, 990))), _LAST, who=who)


def _pipelined(size: int, who: str) -> bytes:
    return _head(b"GET /livez", who=who) * max(min(size, 300_000) // 60, 1) + _head(b"GET /livez", _LAST, who=who)


def _chunks(size: int, who: str) -> bytes:
    head = _head(_POST, _TYPED, b"transfer-encoding: chunked", _LAST, who=who)
    return head + b"1\r\n \r\n" * (size // 6) + b"0\r\n\r\n"


def _extensions(size: int, who: str) -> bytes:
    head = _head(_POST, _TYPED, b"transfer-encoding: chunked", _LAST, who=who)
    return head + b"1;" + b"a" * size + b"\r\n \r\n0\r\n" + b"t: a\r\n" * (size // 6) + b"\r\n"


def _coded(size: int, who: str) -> bytes:
    return _head(_POST, _TYPED, b"transfer-encoding: gzip, chunked", who=who) + b"0\r\n\r\n"


def _spaced_host(size: int, who: str) -> bytes:
    return _head(b"GET /livez", _LAST, host=b"a b", who=who)


def _two_lengths(size: int, who: str) -> bytes:
    return _head(_POST, b"content-length: 2", b"content-length: 3", who=who) + b"{} "


def _stalled(size: int, who: str) -> bytes:
    return _head(_POST, _TYPED, b"content-length: %d" % (size + 100_000), who=who) + b"{" + b" " * size


HTTP1 = (
    ConnectionAttack("query", _query),
    ConnectionAttack("fields", _fields),
    ConnectionAttack("pipelined", _pipelined),
    ConnectionAttack("chunks", _chunks),
    ConnectionAttack("extensions and trailers", _extensions),
    ConnectionAttack("a coded body", _coded),
    ConnectionAttack("a host with a space", _spaced_host),
    ConnectionAttack("two lengths", _two_lengths),
    ConnectionAttack("a stalled body", _stalled, stays=False),
)


# HTTP/2.


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    """Return a frame."""
    return frames.head(len(payload), kind, flags, stream) + payload


def _text(text: bytes) -> bytes:
    size = len(text)
    if size < 0x7F:
        return bytes((size,)) + text
    left, number = size - 0x7F, bytearray(b"\x7f")
    while left >= 0x80:
        number.append(left & 0x7F | 0x80)
        left >>= 7
    number.append(left)
    return bytes(number) + text


def block(path: str, who: str, *fields: tuple[bytes, bytes], authority: bytes = b"x") -> bytes:
    """Return the header block of a request with literal fields."""
    lines = [(b":method", b"GET"), (b":scheme", b"https"), (b":authority", authority), (b":path", path.encode())]
    lines += [(b"authorization", f"Bearer {who}".encode())] if who else []
    return b"".join(b"\0" + _text(name) + _text(value) for name, value in [*lines, *fields])


def _asked(
    who: str, count: int, *fields: tuple[bytes, bytes], path: str = _LIST, flags: int = _WHOLE
) -> Iterator[bytes]:
    whole = block(path, who, *fields)
    for at in range(count):
        yield frames.headers(2 * at + 1, whole, flags & ~frames.END_HEADERS)


def _begun(*settings: tuple[Setting, int]) -> bytes:
    return PREFACE + frames.settings(dict(settings))


def _room(size: int, who: str) -> bytes:
    """Return the frames of a client that exhausts the window of the connection, and then increases it byte by byte."""
    asked = b"".join(_asked(who, MOST_STREAMS))
    return _begun() + asked + frames.window_update(0, 1) * (size // 13) + PING


def _flips(size: int, who: str) -> bytes:
    asked = b"".join(_asked(who, MOST_STREAMS))
    pair = [frames.settings({Setting.INITIAL_WINDOW_SIZE: room}) for room in (1, 0)]
    return _begun((Setting.INITIAL_WINDOW_SIZE, 0)) + asked + b"".join(pair) * (size // 30) + PING


def _held(size: int, who: str) -> bytes:
    asked = _asked(who, MOST_STREAMS, (b"x", b"a" * min(size, 100_000)))
    return _begun((Setting.INITIAL_WINDOW_SIZE, 0)) + b"".join(asked) + PING


def _reset(size: int, who: str) -> bytes:
    count = max(size // 60, 1)
    pairs = (asked + frames.reset(2 * at + 1, frames.Code.NO_ERROR) for at, asked in enumerate(_asked(who, count)))
    return _begun() + b"".join(pairs) + PING


def _made_to_reset(size: int, who: str) -> bytes:
    count = max(size // 60, 1)
    pairs = (asked + frames.window_update(2 * at + 1, 0) for at, asked in enumerate(_asked(who, count)))
    return _begun() + b"".join(pairs) + PING


def _too_many(size: int, who: str) -> bytes:
    return _begun((Setting.INITIAL_WINDOW_SIZE, 0)) + b"".join(_asked(who, max(size // 60, 2 * MOST_STREAMS))) + PING


def _many_fields(size: int, who: str) -> bytes:
    whole = block(_LIST, who) + b"\x90" * 980  # accept-encoding: gzip, deflate
    asked = (frames.headers(2 * at + 1, whole, frames.END_STREAM) for at in range(max(size // 1000, 1)))
    return _begun() + b"".join(asked) + PING


def _repeated(data: bytes, size: int, who: str) -> bytes:
    return _begun() + data * (size // len(data)) + PING


def _bodies(size: int, who: str) -> bytes:
    asked = b"".join(_asked(who, 1, flags=0))
    return _begun() + asked + frame(frames.DATA, 0, 1) * (size // 9) + PING


def _continued(size: int, who: str) -> bytes:
    asked = frame(frames.HEADERS, frames.END_STREAM, 1, block(_LIST, who))
    return _begun() + asked + frame(frames.CONTINUATION, 0, 1) * (size // 9) + PING


def _late_settings(size: int, who: str) -> bytes:
    return PREFACE + PING + frames.settings({})


def _bad_settings(size: int, who: str) -> bytes:
    return PREFACE + frame(frames.SETTINGS, 0, 0, b"\0\2\0\0\0\2" + b"\0\2\0\0\0\1") + PING


def _bad_authority(size: int, who: str) -> bytes:
    return _begun() + frames.headers(1, block(_LIST, who, authority=b"a\x01b"), frames.END_STREAM) + PING


def _any_frames(size: int, who: str) -> bytes:
    choice = random.Random(size)
    return (
        _begun()
        + b"".join(
            frame(
                choice.randrange(12), choice.randrange(256), choice.randrange(9), choice.randbytes(choice.randrange(30))
            )
            for _ in range(max(size // 30, 1))
        )
        + PING
    )


HTTP2 = (
    ConnectionAttack("room byte by byte", _room),
    ConnectionAttack("room that settings flip", _flips),
    ConnectionAttack("held heads", _held),
    ConnectionAttack("rapid reset", _reset),
    ConnectionAttack("resets by the server", _made_to_reset),
    ConnectionAttack("more streams than may be", _too_many),
    ConnectionAttack("heads of many fields", _many_fields),
    ConnectionAttack("pings", partial(_repeated, frame(frames.PING, 0, 0, b"flooding"))),
    ConnectionAttack("settings", partial(_repeated, frames.settings({}))),
    ConnectionAttack("priorities", partial(_repeated, frame(frames.PRIORITY, 0, 1, bytes(5)))),
    ConnectionAttack("unknown frames", partial(_repeated, frame(77, 0, 0))),
    ConnectionAttack("empty bodies", _bodies),
    ConnectionAttack("empty continuations", _continued),
    ConnectionAttack("settings that come late", _late_settings),
    ConnectionAttack("settings that repeat a bad value", _bad_settings),
    ConnectionAttack("an authority with control characters", _bad_authority),
    ConnectionAttack("any frames", _any_frames),
)

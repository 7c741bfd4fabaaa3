from __future__ import annotations

from base64 import urlsafe_b64encode

import pytest

from ctrlmgr.authentication.bearer import EXTRA_SPACE, bearer_token, web_socket_token
from ctrlmgr.authentication.user import CredentialsRefused

SOCKET = [(b"connection", b"keep-alive, Upgrade"), (b"upgrade", b"WebSocket")]
PREFIX = "base64url.bearer.authorization.k8s.io."


def protocol(token: bytes) -> str:
    return PREFIX + urlsafe_b64encode(token).rstrip(b"=").decode()


@pytest.mark.parametrize(
    ("value", "token"),
    [
        (b"Bearer t", "t"),
        (b"bearer t", "t"),
        (b"  BEARER t  ", "t"),
        (b"Bearer t x", "t"),
        (b"Bearer", None),
        (b"Bearer ", None),
        (b"", None),
        (b"t", None),
        (b"Basic dXNlcjpwYXNz", None),
        (b"Token t", None),
        (b'Bearer "t"', '"t"'),
    ],
)
def test_a_token_is_read_from_the_header(value: bytes, token: str | None) -> None:
    assert bearer_token([(b"authorization", value)]) == (token, "")


def test_the_first_header_counts() -> None:
    assert bearer_token([(b"authorization", b"Bearer a"), (b"authorization", b"Bearer b")]) == ("a", "")
    assert bearer_token([(b"authorization", b"Basic x"), (b"authorization", b"Bearer b")]) == (None, "")


def test_an_additional_space_causes_a_warning() -> None:
    assert bearer_token([(b"authorization", b"Bearer  t")]) == (None, EXTRA_SPACE)


def test_a_web_socket_can_send_its_token_as_a_subprotocol() -> None:
    headers = [*SOCKET, (b"sec-websocket-protocol", f"v4.channel.k8s.io, {protocol(b't')}".encode())]
    assert web_socket_token(headers) == "t"
    assert web_socket_token(headers[2:]) is None


@pytest.mark.parametrize(
    "value",
    [
        protocol(b"t"),
        f"a, {protocol(b't')}, {protocol(b't')}",
        f"a, {PREFIX}!!",
        f"a, {PREFIX}a",
        f"a, {protocol(bytes([0xFF]))}",
    ],
)
def test_an_unreadable_token_is_refused(value: str) -> None:
    with pytest.raises(CredentialsRefused):
        web_socket_token([*SOCKET, (b"sec-websocket-protocol", value.encode())])


def test_a_request_without_a_token_has_none() -> None:
    assert web_socket_token([*SOCKET, (b"sec-websocket-protocol", b"v4.channel.k8s.io")]) is None
    assert web_socket_token(SOCKET) is None

"""Tests of the names that requests to a proxy contain, and of the addresses to which the proxy may connect."""

from __future__ import annotations

import pytest

from ctrlmgr.errors import BadRequest
from ctrlmgr.server.proxies.proxy_backends import ProxyName, is_proxyable


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a", ProxyName("", "a", "")),
        ("a:http", ProxyName("", "a", "http")),
        ("https:a:80", ProxyName("https", "a", "80")),
        (":a:", ProxyName("", "a", "")),
    ],
)
def test_names_have_a_scheme_and_a_port(text: str, expected: ProxyName) -> None:
    assert ProxyName.of(text, "pod") == expected


@pytest.mark.parametrize("text", ["", ":80", "ftp:a:80", "https:a:80:b"])
def test_other_names_are_refused(text: str) -> None:
    with pytest.raises(BadRequest, match=f'invalid pod request "{text}"'):
        ProxyName.of(text, "pod")


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("10.0.0.1", True),
        ("192.168.1.1", True),
        ("fd00::1", True),
        ("127.0.0.1", False),
        ("169.254.169.254", False),
        ("224.0.0.1", False),
        ("0.0.0.0", False),
        ("255.255.255.255", False),
        ("::1", False),
        ("fe80::1", False),
        ("::ffff:127.0.0.1", False),
        ("localhost", False),
        ("", False),
    ],
)
def test_only_addresses_of_pods_are_allowed(address: str, expected: bool) -> None:
    assert is_proxyable(address) is expected

"""Tests of the server URL in the administrator's kubeconfig."""

from __future__ import annotations

import pytest

from ctrlmgr.serve.front import certificate_names, reachable
from ctrlmgr.settings import load


@pytest.mark.parametrize(
    ("url", "advertised", "wanted"),
    [
        ("https://0.0.0.0:6443", "192.0.2.7", "https://192.0.2.7:6443"),
        ("https://[::]:6443", "2001:db8::7", "https://[2001:db8::7]:6443"),
        ("https://127.0.0.1:6443", "192.0.2.7", "https://127.0.0.1:6443"),
        ("https://ctrlmgr.example.com:6443", "192.0.2.7", "https://ctrlmgr.example.com:6443"),
    ],
)
def test_a_wildcard_address_is_replaced_for_connections(url: str, advertised: str, wanted: str) -> None:
    assert reachable(url, advertised) == wanted


@pytest.mark.parametrize("host", ["api.example.com", "api.example.com:8443"])
def test_the_external_hostname_is_in_the_certificate(host: str) -> None:
    settings = load({"server.external_hostname": host}, {}).settings
    assert "api.example.com" in certificate_names(settings)

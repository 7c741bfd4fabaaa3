"""Tests of links in response headers, which the proxy rewrites."""

from __future__ import annotations

import pytest

from ctrlmgr.http.proxying.hop_headers import ExternalAddress, forwarded_for, is_upgrade

OUTSIDE = ExternalAddress("https", "cluster.example", "/api/v1/namespaces/a/services/b/proxy")


@pytest.mark.parametrize(
    ("location", "rewritten"),
    [
        ("/there", f"https://cluster.example{OUTSIDE.prefix}/there"),
        ("/there/", f"https://cluster.example{OUTSIDE.prefix}/there/"),
        ("http://10.0.0.1:80/there?a=b", f"https://cluster.example{OUTSIDE.prefix}/there?a=b"),
        ("http://asked.example/there", f"https://cluster.example{OUTSIDE.prefix}/there"),
        ("https://other.example/there", "https://other.example/there"),
        ("there", "there"),
        (f"{OUTSIDE.prefix}/there", f"https://cluster.example{OUTSIDE.prefix}/there"),
        ("http://[bad/there", "http://[bad/there"),
    ],
)
def test_links_to_the_server_itself_lead_through_the_proxy(location: str, rewritten: str) -> None:
    assert OUTSIDE.rewritten(location, "10.0.0.1:80", "asked.example") == rewritten


def test_a_link_to_the_requested_host_is_kept_if_the_proxy_has_no_host() -> None:
    bare = ExternalAddress(prefix="/p")
    assert bare.rewritten("http://asked.example/x", "10.0.0.1:80", "asked.example") == "http://asked.example/p/x"


@pytest.mark.parametrize(
    ("path", "uri"), [("/x", b"/p/x"), ("/x/", b"/p/x/"), ("/", b"/p/"), ("", b"/p"), ("/a/../b", b"/p/b")]
)
def test_the_server_receives_the_path_that_clients_use(path: str, uri: bytes) -> None:
    assert (
        dict(ExternalAddress(prefix="/p").forwarded([(b"x-forwarded-uri", b"made up")], path))[b"x-forwarded-uri"]
        == uri
    )


def test_the_clients_address_is_appended_to_forwarded_for() -> None:
    given = [(b"x-forwarded-for", b"1.1.1.1"), (b"x-forwarded-for", b"2.2.2.2"), (b"x", b"y")]
    assert forwarded_for(given, "3.3.3.3") == [(b"x", b"y"), (b"x-forwarded-for", b"1.1.1.1, 2.2.2.2, 3.3.3.3")]
    assert forwarded_for(given, "") == given


@pytest.mark.parametrize(("value", "is_one"), [(b"Upgrade", True), (b"keep-alive, upgrade", True), (b"close", False)])
def test_an_upgrade_is_recognized_by_its_connection_header(value: bytes, is_one: bool) -> None:
    assert is_upgrade([(b"connection", value)]) is is_one

"""Tests that string formats accept the same strings as go-openapi, including its oddities."""

from __future__ import annotations

import pytest

from ctrlmgr.extensions.formats import format_named, is_recognized

CASES = [
    ("ipv4", ["1.2.3.4", "01.002.3.4", "::ffff:1.2.3.4"], ["1.2.3", "::1", "", "256.1.1.1"]),
    ("ipv6", ["::1", "2001:db8::", "::ffff:1.2.3.4"], ["1.2.3.4", ":::", "::ffff:01.2.3.4"]),
    ("cidr", ["10.0.0.0/8", "010.0.0.0/8", "::/0"], ["10.0.0.0", "10.0.0.0/33", "x/1"]),
    ("mac", ["01:23:45:67:89:ab", "01-23-45-67-89-AB-cd-ef", "0123.4567.89ab"], ["01:23", "01:23:45:67:89:zz", "0123"]),
    ("hostname", ["a", "example.com", "3com.com", "a-b.example.co", "x" * 63], ["-a", "a..b", "a_b.com", "a.b1", ""]),
    ("uri", ["http://x/y?q=%zz", "/abs", "mailto:a@b", "x:y"], ["", "rel/ative", "foo.com", "http://a b/", "/%zz"]),
    ("email", ["a@b", "A B <a.b@c.d>", '"a b"@c', "a@[1.2.3.4]"], ["a", "a@", "@b", "a..b@c", "a@b, c@d", "<a@b"]),
    ("uuid", ["123e4567-e89b-12d3-a456-426614174000", "123E4567E89B12D3A456426614174000"], ["123e4567", ""]),
    ("uuid4", ["123e4567-e89b-42d3-a456-426614174000"], ["123e4567-e89b-12d3-a456-426614174000"]),
    ("byte", ["YQ==", "YWI=", "YWJj"], ["", "YQ", "a b="]),
    ("date", ["2024-02-29", "0000-02-29"], ["2023-02-29", "2024-2-9", "24-01-01"]),
    ("date-time", ["2014-12-15T19:30:20.000Z", "2014-12-15t19:30:20+01:00"], ["2014-12-15", "2014-12-15T24:00:00Z"]),
    ("datetime", ["2014-12-15T19:30:20z"], ["2014-12-15T19:30:20"]),
    ("duration", ["1h30m", "-1.5s", "0", "22 ns", "2 weeks", "3 days"], ["", "1", "h", "1 parsec"]),
    ("isbn", ["0321751043", "978-0321751041"], ["0321751044", "978-0321751042"]),
    ("creditcard", ["4111-1111-1111-1111"], ["4111111111111112", "1"]),
    ("ssn", ["111-11-1111", "111 11 1111"], ["111111111", "111-11-111"]),
    ("hexcolor", ["#fff", "00FF00"], ["#ff", "#ggg"]),
    ("rgbcolor", ["rgb(0,100,255)", "rgb( 1 , 2 , 3 )"], ["rgb(0,100,256)", "rgb(1,2)"]),
    ("bsonobjectid", ["507f1f77bcf86cd799439011"], ["507f1f77", "507f1f77bcf86cd79943901g"]),
    ("k8s-short-name", ["a-b", "a" * 63], ["a.b", "A", "a" * 64]),
    ("k8s-long-name", ["a.b-c", "a" * 253], ["a..b", "a" * 254]),
    ("password", ["anything"], []),
]


@pytest.mark.parametrize(("name", "right", "wrong"), CASES, ids=[name for name, *_ in CASES])
def test_a_format_accepts_valid_and_refuses_invalid_values(name: str, right: list[str], wrong: list[str]) -> None:
    check = format_named(name)
    assert check is not None
    assert [text for text in right if not check(text)] == []
    assert [text for text in wrong if check(text)] == []


def test_a_format_applies_only_to_its_types() -> None:
    assert is_recognized("date-time", "string")
    assert is_recognized("ipv4", "")
    assert is_recognized("int32", "integer")
    assert is_recognized("double", "number")
    assert not is_recognized("int32", "number")
    assert not is_recognized("ipv4", "integer")
    assert not is_recognized("phone", "string")
    assert not is_recognized("date", "object")

import pytest

from ctrlmgr.engine.validation import name_formats

LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
LABEL_1035 = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')"
)
SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
KEY = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
CONFIG_KEY = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  "
    "or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
ENV = "a valid environment variable name must consist only of printable ASCII characters other than '='"
TOO_LONG = "must be no more than 63 characters"


@pytest.mark.parametrize("value", ["a", "9a", "a-b", "a" * 63])
def test_a_valid_dns_label(value: str) -> None:
    assert name_formats.dns1123_label(value) == []


@pytest.mark.parametrize(
    ("value", "problems"),
    [
        ("", [LABEL]),
        ("-a", [LABEL]),
        ("A", [LABEL]),
        ("a_b", [LABEL]),
        ("a\n", [LABEL]),
        ("a.b", ["must not contain dots"]),
        ("a" * 64, [TOO_LONG]),
        ("A" * 64, [TOO_LONG, LABEL]),
        ("é" * 32, [TOO_LONG, LABEL]),  # 64 bytes
    ],
)
def test_an_invalid_dns_label(value: str, problems: list[str]) -> None:
    assert name_formats.dns1123_label(value) == problems


@pytest.mark.parametrize(
    ("value", "problems"),
    [
        ("example.com", []),
        ("9a", []),
        ("a" * 253, []),
        ("-a", [SUBDOMAIN]),
        ("a..b", [SUBDOMAIN]),
        ("a.-b", [SUBDOMAIN]),
        ("a" * 254, ["must be no more than 253 characters"]),
    ],
)
def test_a_subdomain(value: str, problems: list[str]) -> None:
    assert name_formats.dns1123_subdomain(value) == problems


def test_a_subdomain_with_underscores() -> None:
    assert name_formats.dns1123_subdomain_with_underscore("_http._tcp.a_b") == []
    (problem,) = name_formats.dns1123_subdomain_with_underscore("a_.b")
    assert problem.startswith("a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_',")


@pytest.mark.parametrize(("value", "problems"), [("a9", []), ("9a", [LABEL_1035]), ("a" * 64, [TOO_LONG])])
def test_a_label_that_starts_with_a_letter(value: str, problems: list[str]) -> None:
    assert name_formats.dns1035_label(value) == problems


def test_a_wildcard() -> None:
    assert name_formats.wildcard_dns1123_subdomain("*.example.com") == []
    (problem,) = name_formats.wildcard_dns1123_subdomain("*.*.example.com")
    assert "(e.g. '*.example.com', regex used for validation is '\\*\\.[a-z0-9]" in problem


@pytest.mark.parametrize(
    ("value", "problems"),
    [
        ("a", []),
        ("My_Name.v1", []),
        ("example.com/MyName", []),
        ("a~b", [f"name part {KEY}"]),
        ("", ["name part must be non-empty", f"name part {KEY}"]),
        ("a" * 64, ["name part must be no more than 63 bytes"]),
        ("/a", ["prefix part must be non-empty"]),
        ("Ex/a", [f"prefix part {SUBDOMAIN}"]),
        (f"{'a' * 254}/b", ["prefix part must be no more than 253 bytes"]),
        (
            "a/b/c",
            [f"a valid label key {KEY} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"],
        ),
    ],
)
def test_a_qualified_name(value: str, problems: list[str]) -> None:
    assert name_formats.qualified_name(value) == problems


@pytest.mark.parametrize(
    ("value", "problems"),
    [
        ("", []),
        ("My_value.1", []),
        ("bad value!", [VALUE]),
        ("-a", [VALUE]),
        ("a" * 64, ["must be no more than 63 bytes"]),
    ],
)
def test_a_label_value(value: str, problems: list[str]) -> None:
    assert name_formats.label_value(value) == problems


@pytest.mark.parametrize(
    ("value", "problems"),
    [
        ("KEY_NAME.v-1", []),
        (".hidden", []),
        ("bad key!", [CONFIG_KEY]),
        ("", [CONFIG_KEY]),
        ("k" * 254, ["must be no more than 253 characters"]),
        (".", ["must not be '.'"]),
        ("..", ["must not be '..'"]),
        ("..a", ["must not start with '..'"]),
    ],
)
def test_a_config_map_key(value: str, problems: list[str]) -> None:
    assert name_formats.config_map_key(value) == problems


@pytest.mark.parametrize(
    ("value", "problems"),
    [
        ("A b~", []),
        ("9", []),
        ("a=b", [ENV]),
        ("é", [ENV]),
        ("a\t", [ENV]),
        ("", ["environment variable name must be non-empty"]),
    ],
)
def test_an_environment_variable(value: str, problems: list[str]) -> None:
    assert name_formats.env_var_name(value) == problems


@pytest.mark.parametrize(
    ("value", "problems"),
    [
        ("http", []),
        ("way-too-long-port-name", ["must be no more than 15 characters"]),
        (
            "TOO_BAD",
            [
                "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
                "must contain at least one letter (a-z)",
            ],
        ),
        ("80", ["must contain at least one letter (a-z)"]),
        ("a--b", ["must not contain consecutive hyphens"]),
        ("-a", ["must not begin or end with a hyphen"]),
    ],
)
def test_a_port_name(value: str, problems: list[str]) -> None:
    assert name_formats.port_name(value) == problems


@pytest.mark.parametrize(
    ("value", "problems"),
    [
        (1, []),
        (65535, []),
        (0, ["must be between 1 and 65535, inclusive"]),
        (70000, [name_formats.out_of_range(1, 65535)]),
    ],
)
def test_a_port_number(value: int, problems: list[str]) -> None:
    assert name_formats.port_number(value) == problems


def test_numbers_have_ranges() -> None:
    assert name_formats.user_id(2**31 - 1) == []
    for value in (-1, 2**31):
        assert name_formats.user_id(value) == ["must be between 0 and 2147483647, inclusive"]


@pytest.mark.parametrize(
    ("check", "right", "wrong", "problem"),
    [
        (
            name_formats.percent,
            "93%",
            "93",
            "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex "
            "used for validation is '[0-9]+%')",
        ),
        (
            name_formats.http_header_name,
            "X-Header",
            "X Header",
            "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for "
            "validation is '[-A-Za-z0-9]+')",
        ),
        (
            name_formats.http_path,
            "a/b",
            "a b",
            r"Invalid path (regex used for validation is '[A-Za-z0-9/\-._~%!$&'()*+,;=:]+')",
        ),
    ],
)
def test_other_formats(check: name_formats.Check, right: str, wrong: str, problem: str) -> None:
    assert check(right) == []
    assert check(wrong) == [problem]


@pytest.mark.parametrize(
    ("name", "problems"),
    [
        ("System:A", []),
        (".", ["may not be '.'"]),
        ("..", ["may not be '..'"]),
        ("a/b%", ["may not contain '/'", "may not contain '%'"]),
    ],
)
def test_a_name_that_is_a_valid_url_segment(name: str, problems: list[str]) -> None:
    assert name_formats.path_segment_name(name) == problems


def test_a_dot_is_an_invalid_name_but_a_valid_prefix() -> None:
    assert name_formats.path_segment_name(".", is_prefix=True) == []


@pytest.mark.parametrize("check", [name_formats.subdomain_name, name_formats.label_name])
def test_a_prefix_can_end_with_a_hyphen(check: name_formats.NameCheck) -> None:
    assert check("gen-", True) == []
    assert check("gen-", False) != []
    assert check("-", True) != []


def test_any_name_is_valid_if_none_is_required() -> None:
    assert name_formats.any_name("a/b c", False) == []

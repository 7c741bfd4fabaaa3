"""Validates names, labels, keys and ports: one function for each format, which returns Kubernetes' error messages.

Guarantees:
- Each function returns Kubernetes' messages for a value, byte for byte and in Kubernetes' order; if the value is valid,
  it returns no messages.
- Lengths are counted in bytes of UTF-8, as in Go.
- Validating a valid value costs one match of one regular expression, and validating a repeated value costs one cache
  look-up.

Functions of type `NameCheck` validate the names of a kind's objects; `Strategy.name_check` is one of them.

Rules come from apimachinery's `pkg/util/validation/validation.go`, `pkg/api/validate/content` and
`pkg/api/validation/generic.go`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import wraps
from typing import TypeAlias

from ctrlmgr.caches import BoundedCache
from ctrlmgr.caches.memoized import SecondHitFilter

Check: TypeAlias = Callable[[str], list[str]]
"""A function that returns the error messages for a value."""

NameCheck: TypeAlias = Callable[[str, bool], list[str]]
"""A function that returns the error messages for an object's name.

The argument of type bool is set if the value is a `generateName`, which is only a prefix.
"""

EMPTY = "must be non-empty"
LABEL_LENGTH = 63
SUBDOMAIN_LENGTH = 253
PORT_NAME_LENGTH = 15

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_UNDERSCORED = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_UNDERSCORED_SUBDOMAIN = rf"{_UNDERSCORED}(\.{_UNDERSCORED})*"
_LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_WILDCARD = rf"\*\.{_SUBDOMAIN}"
_KEY_NAME = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE = f"({_KEY_NAME})?"
_CONFIG_KEY = "[-._a-zA-Z0-9]+"
_HEADER = "[-A-Za-z0-9]+"
_PERCENT = "[0-9]+%"
_PATH = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"


_ENTRIES = 4096


def _caching(check: Check) -> Check:
    """Return a validation function that caches valid values.

    A value enters the cache when it is validated for the second time.
    """
    cache: BoundedCache[str, bool] = BoundedCache(f"names.{check.__name__}", entries=_ENTRIES, largest=SUBDOMAIN_LENGTH)
    is_right, counts = cache.peek, cache.counts
    is_seen = SecondHitFilter(_ENTRIES)

    @wraps(check)
    def cached(value: str) -> list[str]:
        if is_right(value):
            counts.hits += 1
            return []
        counts.misses += 1
        problems = check(value)
        if not problems and is_seen(value):
            cache.put(value, True, len(value))
        return problems

    return cached


def _matcher(pattern: str) -> Callable[[str], object]:
    """Return a function that matches whole strings against a pattern.

    The function replaces the capturing groups of Kubernetes' pattern by groups that do not capture, which are faster.
    """
    return re.compile(pattern.replace("(", "(?:")).fullmatch


_is_label = _matcher(_LABEL)
_is_subdomain = _matcher(_SUBDOMAIN)
_is_underscored_subdomain = _matcher(_UNDERSCORED_SUBDOMAIN)
_is_label_1035 = _matcher(_LABEL_1035)
_is_wildcard = _matcher(_WILDCARD)
_is_key_name = _matcher(_KEY_NAME)
_is_qualified = _matcher(f"({_SUBDOMAIN}/)?{_KEY_NAME}")
_is_value = _matcher(_VALUE)
_is_config_key = _matcher(_CONFIG_KEY)
_is_header = _matcher(_HEADER)
_is_percent = _matcher(_PERCENT)
_is_path = re.compile(_PATH).fullmatch
_is_port_name = _matcher("[-a-z0-9]+")
_is_printable_ascii = _matcher("[ -<>-~]+")
_has_letter = re.compile("[a-z]").search

_ALPHANUMERIC_ENDS = "and must start and end with an alphanumeric character"
_LABEL_WORDS = (
    f"a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', {_ALPHANUMERIC_ENDS}"
)
_SUBDOMAIN_WORDS = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
    f"{_ALPHANUMERIC_ENDS}"
)
_UNDERSCORED_WORDS = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', "
    f"{_ALPHANUMERIC_ENDS}"
)
_LABEL_1035_WORDS = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character"
)
_WILDCARD_WORDS = (
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of "
    "lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character"
)
_KEY_WORDS = f"must consist of alphanumeric characters, '-', '_' or '.', {_ALPHANUMERIC_ENDS}"
_VALUE_WORDS = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    f"{_ALPHANUMERIC_ENDS}"
)
_CONFIG_KEY_WORDS = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
_ENV_WORDS = "a valid environment variable name must consist only of printable ASCII characters other than '='"


def too_long(limit: int, unit: str = "characters") -> str:
    """Return the message for a value of more than `limit` bytes; Go's older messages say "characters" for bytes."""
    return f"must be no more than {limit} {unit}"


def mismatch(words: str, pattern: str, *examples: str) -> str:
    """Return the message for a value that does not match Kubernetes' pattern `pattern` (Go's `RegexError`)."""
    if not examples:
        return f"{words} (regex used for validation is '{pattern}')"
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{words} (e.g. {shown}regex used for validation is '{pattern}')"


def out_of_range(low: int, high: int) -> str:
    """Return the message for a number that is not between `low` and `high`."""
    return f"must be between {low} and {high}, inclusive"


def length(value: str) -> int:
    """Return the length of `value` in bytes of UTF-8, as Go's `len` does."""
    return len(value) if value.isascii() else len(value.encode("utf-8", "surrogatepass"))


@_caching
def dns1123_label(value: str) -> list[str]:
    """Validate a label of a domain name, such as `my-name` or `123-abc`, of at most 63 bytes."""
    problems = [too_long(LABEL_LENGTH)] if length(value) > LABEL_LENGTH else []
    if not _is_label(value):
        dotted = _is_subdomain(value) is not None
        words = "must not contain dots" if dotted else mismatch(_LABEL_WORDS, _LABEL, "my-name", "123-abc")
        problems.append(words)
    return problems


@_caching
def dns1123_subdomain(value: str) -> list[str]:
    """Validate a domain name in lower case, such as `example.com`, of at most 253 bytes."""
    problems = [too_long(SUBDOMAIN_LENGTH)] if length(value) > SUBDOMAIN_LENGTH else []
    if not _is_subdomain(value):
        problems.append(mismatch(_SUBDOMAIN_WORDS, _SUBDOMAIN, "example.com"))
    return problems


def dns1123_subdomain_with_underscore(value: str) -> list[str]:
    """Validate a domain name whose labels may contain underscores, as in SRV records."""
    problems = [too_long(SUBDOMAIN_LENGTH)] if length(value) > SUBDOMAIN_LENGTH else []
    if not _is_underscored_subdomain(value):
        problems.append(mismatch(_UNDERSCORED_WORDS, _UNDERSCORED_SUBDOMAIN, "example.com"))
    return problems


def dns1035_label(value: str) -> list[str]:
    """Validate a label that starts with a letter, such as `my-name` or `abc-123`."""
    problems = [too_long(LABEL_LENGTH)] if length(value) > LABEL_LENGTH else []
    if not _is_label_1035(value):
        problems.append(mismatch(_LABEL_1035_WORDS, _LABEL_1035, "my-name", "abc-123"))
    return problems


def wildcard_dns1123_subdomain(value: str) -> list[str]:
    """Validate a wildcard domain name such as `*.example.com` (RFC 1034, 4.3.3)."""
    problems = [too_long(SUBDOMAIN_LENGTH)] if length(value) > SUBDOMAIN_LENGTH else []
    if not _is_wildcard(value):
        problems.append(mismatch(_WILDCARD_WORDS, _WILDCARD, "*.example.com"))
    return problems


@_caching
def qualified_name(value: str) -> list[str]:
    """Validate a label key, a finalizer or a condition type, such as `name` or `example.com/name`."""
    if len(value) <= LABEL_LENGTH and _is_qualified(value):  # the usual case, in which neither part can be too long
        return []
    prefix, slash, name = value.rpartition("/")
    if "/" in prefix:
        return [
            f"a valid label key {mismatch(_KEY_WORDS, _KEY_NAME, 'MyName', 'my.name', '123-abc')}"
            " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        ]
    problems: list[str] = []
    if slash:
        problems += [f"prefix part {each}" for each in (_key_prefix(prefix) if prefix else [EMPTY])]
    if not name:
        problems.append(f"name part {EMPTY}")
    elif length(name) > LABEL_LENGTH:
        problems.append(f"name part {too_long(LABEL_LENGTH, 'bytes')}")
    if not _is_key_name(name):
        problems.append(f"name part {mismatch(_KEY_WORDS, _KEY_NAME, 'MyName', 'my.name', '123-abc')}")
    return problems


@_caching
def _key_prefix(value: str) -> list[str]:
    problems = [too_long(SUBDOMAIN_LENGTH, "bytes")] if length(value) > SUBDOMAIN_LENGTH else []
    if not _is_subdomain(value):
        problems.append(mismatch(_SUBDOMAIN_WORDS, _SUBDOMAIN, "example.com"))
    return problems


@_caching
def label_value(value: str) -> list[str]:
    """Validate a label's value, which is empty or has up to 63 bytes that start and end with a letter or digit."""
    problems = [too_long(LABEL_LENGTH, "bytes")] if length(value) > LABEL_LENGTH else []
    if not _is_value(value):
        problems.append(mismatch(_VALUE_WORDS, _VALUE, "MyValue", "my_value", "12345"))
    return problems


def config_map_key(value: str) -> list[str]:
    """Validate a key of a ConfigMap's or Secret's data, which becomes a file name if the object is mounted."""
    problems = [too_long(SUBDOMAIN_LENGTH)] if length(value) > SUBDOMAIN_LENGTH else []
    if not _is_config_key(value):
        problems.append(mismatch(_CONFIG_KEY_WORDS, _CONFIG_KEY, "key.name", "KEY_NAME", "key-name"))
    return problems + _leaves_directory(value)


def _leaves_directory(value: str) -> list[str]:
    if value in (".", ".."):
        return [f"must not be '{value}'"]
    return ["must not start with '..'"] if value.startswith("..") else []


def env_var_name(value: str) -> list[str]:
    """Validate an environment variable's name, which may contain printable ASCII characters except `=` (KEP-4369)."""
    if not value:
        return [f"environment variable name {EMPTY}"]
    return [] if _is_printable_ascii(value) else [_ENV_WORDS]


def port_number(value: int) -> list[str]:
    """Validate a port number, which must be between 1 and 65535."""
    return [] if 1 <= value <= 65535 else [out_of_range(1, 65535)]


def in_range(value: int, low: int, high: int) -> list[str]:
    """Validate that a number is within a range that includes its bounds."""
    return [] if low <= value <= high else [out_of_range(low, high)]


def user_id(value: int) -> list[str]:
    """Validate a Unix uid or gid, which must fit into 31 bits (`IsValidUserID`, `IsValidGroupID`)."""
    return in_range(value, 0, 0x7FFFFFFF)


@_caching
def port_name(value: str) -> list[str]:
    """Validate a port's name, which has up to 15 characters of `a-z0-9-` and at least one letter.

    Hyphens must be between two other characters.
    """
    problems = [too_long(PORT_NAME_LENGTH)] if length(value) > PORT_NAME_LENGTH else []
    if not _is_port_name(value):
        problems.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not _has_letter(value):
        problems.append("must contain at least one letter (a-z)")
    if "--" in value:
        problems.append("must not contain consecutive hyphens")
    if value.startswith("-") or value.endswith("-"):
        problems.append("must not begin or end with a hyphen")
    return problems


def percent(value: str) -> list[str]:
    """Validate a percentage such as `93%`."""
    words = "a valid percent string must be a numeric string followed by an ending '%'"
    return [] if _is_percent(value) else [mismatch(words, _PERCENT, "1%", "93%")]


def http_header_name(value: str) -> list[str]:
    """Validate the name of an HTTP header."""
    words = "a valid HTTP header must consist of alphanumeric characters or '-'"
    return [] if _is_header(value) else [mismatch(words, _HEADER, "X-Header-Name")]


def http_path(value: str) -> list[str]:
    """Validate the characters of an HTTP path (RFC 3986)."""
    return [] if _is_path(value) else [mismatch("Invalid path", _PATH)]


def path_segment_name(name: str, is_prefix: bool = False) -> list[str]:
    """Validate that a name can be a segment of a URL path, which all kinds require."""
    if not is_prefix and name in (".", ".."):
        return [f"may not be '{name}'"]
    return [f"may not contain '{each}'" for each in "/%" if each in name]


def subdomain_name(name: str, is_prefix: bool = False) -> list[str]:
    """Validate an object's name as a domain name, as most kinds require (`NameIsDNSSubdomain`)."""
    return dns1123_subdomain(_as_whole(name) if is_prefix else name)


def label_name(name: str, is_prefix: bool = False) -> list[str]:
    """Validate an object's name as a label of a domain name (`NameIsDNSLabel`)."""
    return dns1123_label(_as_whole(name) if is_prefix else name)


def any_name(name: str, is_prefix: bool = False) -> list[str]:
    """Accept every name."""
    return []


def _as_whole(prefix: str) -> str:
    """Replace a hyphen at the end of a prefix, because a generated suffix follows it (Go's `maskTrailingDash`)."""
    return f"{prefix[:-2]}a" if len(prefix) > 1 and prefix.endswith("-") else prefix

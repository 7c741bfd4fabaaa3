"""Functions of patterns and URLs, and of keys in the paths of JSON patches.

Source: apiserver `pkg/cel/library/{regex,urls,jsonpatch}.go`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final
from urllib.parse import quote, unquote, unquote_plus

from ctrlmgr.expressions.declarations import Library
from ctrlmgr.expressions.types import Type, opaque
from ctrlmgr.expressions.values import EvalError
from ctrlmgr.golang.go_url import Url, parse_request_uri
from ctrlmgr.regexp import PatternError, compiled

TEXTS: Final = Library()
PATCHES: Final = Library()
"""The functions for the paths of JSON patches."""
_function = TEXTS.function


def _found(text: str, pattern: str, most: int) -> list[str]:
    try:
        return [text[begin:end] for begin, end in compiled(pattern).spans(text, most)]
    except PatternError as error:
        raise EvalError(f"Illegal regex: {error}") from error


@_function("find", "string.(string) -> string")
def _find(text: str, pattern: str) -> str:
    return "".join(_found(text, pattern, 1))


@_function("findAll", "string.(string) -> list(string)", "string.(string, int) -> list(string)")
def _find_all(text: str, pattern: str, most: int = -1) -> list[str]:
    return _found(text, pattern, most if most >= 0 else -1)


@dataclass(frozen=True, slots=True)
class URL:
    """The CEL value of a parsed URL."""

    text: str
    parts: Url

    cel_type: ClassVar[Type] = opaque("kubernetes.URL")

    @property
    def cel_size(self) -> int:
        """The number of characters in the URL."""
        return len(self.text)


def _parsed(text: str) -> Url:
    try:
        url = parse_request_uri(text)
    except ValueError as error:
        raise EvalError(f"URL parse error during conversion from string: {error}") from error
    return url


def uri_problems(text: str) -> list[str]:
    """Return the errors of a string that must be an absolute URI or path."""
    try:
        parse_request_uri(text)
    except ValueError as error:
        return [str(error)]
    return []


@_function("url", "(string) -> kubernetes.URL")
def _url(text: str) -> URL:
    return URL(text, _parsed(text))


@_function("isURL", "(string) -> bool")
def _is_url(text: str) -> bool:
    try:
        _parsed(text)
    except EvalError:
        return False
    return True


@_function("getScheme", "kubernetes.URL.() -> string")
def _scheme(url: URL) -> str:
    return url.parts.scheme


@_function("getHost", "kubernetes.URL.() -> string")
def _host(url: URL) -> str:
    return unquote(url.parts.host)


def _split(url: URL) -> tuple[str, str]:
    """Return the host of a URL without brackets, and the port."""
    host = _host(url)
    if host.startswith("["):
        name, _, rest = host[1:].partition("]")
        return name, rest.removeprefix(":")
    name, _, port = host.partition(":")
    return name, port


@_function("getHostname", "kubernetes.URL.() -> string")
def _hostname(url: URL) -> str:
    return _split(url)[0]


@_function("getPort", "kubernetes.URL.() -> string")
def _port(url: URL) -> str:
    return _split(url)[1]


@_function("getEscapedPath", "kubernetes.URL.() -> string")
def _path(url: URL) -> str:
    return quote(url.parts.path, safe="%/:@!$&'()*+,;=-._~[]")


@_function("getQuery", "kubernetes.URL.() -> map(string, list(string))")
def _query(url: URL) -> dict[str, list[str]]:
    values: dict[str, list[str]] = {}
    for part in url.parts.query.split("&"):
        if part and ";" not in part:
            key, _, value = part.partition("=")
            values.setdefault(unquote_plus(key), []).append(unquote_plus(value))
    return values


@PATCHES.function("jsonpatch.escapeKey", "(string) -> string")
def _escape_key(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")

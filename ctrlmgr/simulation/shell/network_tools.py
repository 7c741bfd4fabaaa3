"""Implements tools that connect to hosts: `wget`, `curl`, `nc`, `nslookup`, `getent`.

Guarantees: a tool succeeds if the simulated network accepts the connection. If the connection fails, the tool fails
with the same exit code and error message as in busybox or curl. The content of every response is empty.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence
from math import inf
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from ctrlmgr.simulation.shell.tool_interface import Outcome, Tool, ToolContext, number_of, options_of, unescaped
from ctrlmgr.simulation.simulated_network import REFUSED, TIMEOUT, UNKNOWN_HOST, Answer

_TAKES: Final = 0.01
"""The duration of a request, in seconds."""
_PATIENCE: Final = 130.0
"""The number of seconds after which Linux gives up an attempt to connect."""
_PORTS: Final = {"http": 80, "https": 443, "ftp": 21, "telnet": 23, "tcp": 80}


class _Target(NamedTuple):
    """The host, the port and the path of a URL."""

    host: str
    port: int
    file: str
    """The last part of the URL's path, which is a file name."""


def _target(url: str) -> _Target | None:
    """Return the target of a URL; None if the URL is malformed.

    The scheme of the URL is optional.
    """
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        port = parts.port
    except ValueError:
        return None
    if not parts.hostname:
        return None
    return _Target(parts.hostname, port or _PORTS.get(parts.scheme, 80), posixpath.basename(parts.path))


def _time(answer: Answer, patience: str) -> float:
    """Return the duration of a request in seconds.

    If there is no response, the duration is the timeout of the client.
    """
    if answer.problem != TIMEOUT:
        return _TAKES
    return float(patience) if re.fullmatch(r"\d+(\.\d+)?", patience) else _PATIENCE


# The following functions implement wget.


_WGET_NAMES: Final = """
output-document timeout tries directory-prefix header user-agent post-data post-file user password ca-certificate
"""
_WGET_TAKES: Final = frozenset([*"OTtPUYo", *_WGET_NAMES.split()])


def _wget(arguments: Sequence[str], desk: ToolContext) -> Outcome:
    options, urls = options_of(arguments, _WGET_TAKES)
    is_quiet = bool({"q", "quiet"} & options.keys())
    err, takes = "", 0.0
    for url in urls:
        code, output, seconds = _fetch(url, options, desk)
        err += output if code or not is_quiet else ""
        takes += seconds
        if code:
            return Outcome(code, err=err, takes=takes)
    return Outcome(0 if urls else 1, err=err or ("" if urls else "wget: missing URL\n"), takes=takes)


def _fetch(url: str, options: Mapping[str, str], desk: ToolContext) -> tuple[int, str, float]:
    """Fetch one URL; return the exit code, the messages, and the duration in seconds."""
    target = _target(url)
    if target is None:
        return 1, f"wget: not an http or ftp url: {url}\n", 0.0
    answer = desk.connect(target.host, target.port)
    where = f"{target.host}:{target.port}"
    takes = _time(answer, options.get("T") or options.get("timeout") or "")
    if answer.problem == UNKNOWN_HOST:
        return 1, f"wget: bad address '{where}'\n", takes
    output = f"Connecting to {where} ({answer.address}:{target.port})\n"
    if answer.problem == TIMEOUT:
        return 1, f"{output}wget: download timed out\n", takes
    if answer.problem:
        return 1, f"{output}wget: can't connect to remote host ({answer.address}): Connection refused\n", takes
    if "spider" in options:
        return 0, f"{output}remote file exists\n", takes
    return 0, output + _save(target, options, desk), takes


def _save(target: _Target, options: Mapping[str, str], desk: ToolContext) -> str:
    name = options.get("O") or options.get("output-document") or target.file or "index.html"
    if name == "-":
        return ""
    folder = options.get("P") or options.get("directory-prefix") or ""
    desk.files[desk.path(posixpath.join(folder, name))] = ""
    return f"saving to '{name}'\n'{name}' saved\n"


# The following functions implement curl.

_CURL_NAMES: Final = """
output write-out max-time connect-timeout retry retry-delay retry-max-time header data data-raw data-binary
data-urlencode json request user user-agent referer form cookie cookie-jar cacert cert key resolve proxy url
"""
_CURL_TAKES: Final = frozenset([*"oTwmHdXuAeFbcxrDCEKYyz", *_CURL_NAMES.split()])
_CURL_PROBLEMS: Final = {
    UNKNOWN_HOST: (6, "Could not resolve host: {host}"),
    REFUSED: (7, "Failed to connect to {host} port {port} after 0 ms: Could not connect to server"),
    TIMEOUT: (28, "Connection timed out after {ms} milliseconds"),
}


def _curl(arguments: Sequence[str], desk: ToolContext) -> Outcome:
    options, urls = options_of(arguments, _CURL_TAKES)
    target = _target(options.get("url") or (urls[0] if urls else ""))
    if target is None:
        return Outcome(2 if not urls else 3, err="curl: (3) URL rejected: No host part in the URL\n")
    answer = desk.connect(target.host, target.port)
    patience = options.get("connect-timeout") or options.get("m") or options.get("max-time") or ""
    takes = _time(answer, patience)
    code, words = _CURL_PROBLEMS.get(answer.problem, (0, ""))
    is_silent = bool({"s", "silent"} & options.keys()) and not {"S", "show-error"} & options.keys()
    message = words.format(host=target.host, port=target.port, ms=int(takes * 1000))
    err = f"curl: ({code}) {message}\n" if code and not is_silent else ""
    retries = number_of(options.get("retry") or "0") if code == 28 or "retry-connrefused" in options else 0
    if code and retries:
        takes += retries * (number_of(options.get("retry-delay") or "1") + takes)
    if not code:
        _store(target, options, desk)
    return Outcome(code, _summary(options, "000" if code else "200"), err, takes)


def _store(target: _Target, options: Mapping[str, str], desk: ToolContext) -> None:
    name = options.get("o") or options.get("output") or (target.file if "O" in options else "")
    if name and name not in ("-", "/dev/null"):
        desk.files[desk.path(name)] = ""


def _summary(options: Mapping[str, str], status: str) -> str:
    """Return the text that curl's option `--write-out` prints; only the status code is supported."""
    text = unescaped(options.get("w") or options.get("write-out") or "")
    text = re.sub(r"%\{(?:http_code|response_code)\}", status, text)
    head = f"HTTP/1.1 {status} OK\r\n\r\n" if {"I", "i", "head", "include"} & options.keys() and status != "000" else ""
    return head + re.sub(r"%\{[^}]*\}", "", text)


# The following functions implement the other network tools.


def _nc(arguments: Sequence[str], desk: ToolContext) -> Outcome:
    options, words = options_of(arguments, "wpiesqX")
    if "l" in options:
        return Outcome(takes=inf)
    if len(words) < 2 or not words[1].isdecimal():
        return Outcome(1, err="nc: usage: nc [OPTIONS] HOST PORT\n")
    host, port = words[0], int(words[1])
    answer = desk.connect(host, None if "u" in options else port)
    takes = _time(answer, options.get("w") or "")
    if answer.problem == UNKNOWN_HOST:
        return Outcome(1, err=f"nc: bad address '{host}'\n", takes=takes)
    place = f"{host} ({answer.address}:{port})"
    if answer.problem:
        return Outcome(1, err=f"nc: {place}: {answer.problem.capitalize()}\n" if "v" in options else "", takes=takes)
    return Outcome(err=f"{place} open\n" if "v" in options else "", takes=takes)


def _nslookup(arguments: Sequence[str], desk: ToolContext) -> Outcome:
    names = [each for each in arguments if not each.startswith("-")]
    if not names:
        return Outcome(1, err="nslookup: missing host\n")
    answer = desk.connect(names[0], None)
    if answer.problem:
        return Outcome(1, f"** server can't find {names[0]}: NXDOMAIN\n", takes=_TAKES)
    return Outcome(out=f"Name:\t{names[0]}\nAddress: {answer.address}\n", takes=_TAKES)


def _getent(arguments: Sequence[str], desk: ToolContext) -> Outcome:
    """Look up a host: `getent hosts NAME` or `getent ahosts NAME`; the other databases of getent are empty."""
    if len(arguments) < 2 or not arguments[0].lower().startswith(("hosts", "ahosts")):
        return Outcome(2)
    answer = desk.connect(arguments[1], None)
    return (
        Outcome(2, takes=_TAKES) if answer.problem else Outcome(out=f"{answer.address}  {arguments[1]}\n", takes=_TAKES)
    )


NETWORK: Final[Mapping[str, Tool]] = {
    "curl": _curl,
    "getent": _getent,
    "nc": _nc,
    "ncat": _nc,
    "netcat": _nc,
    "nslookup": _nslookup,
    "wget": _wget,
}
"""The tools of this module, by name."""

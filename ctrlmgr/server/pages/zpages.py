"""Serves `/flagz`, with the flags of this process, and `/statusz`, with its start time, its versions and its paths.

A client receives plain text, or an object of config.k8s.io if its Accept header asks for one, such as
`application/json;as=Statusz;v=v1beta1;g=config.k8s.io`. As in Kubernetes, plain text has random delimiters, so that no
client depends on a particular delimiter.

Source: apiserver `pkg/server/{flagz,statusz}`.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from random import Random
from typing import Any, Final, NamedTuple

import msgspec

from ctrlmgr.clock import Clock
from ctrlmgr.engine.features.gates import is_on
from ctrlmgr.errors import NotAcceptable
from ctrlmgr.server.describe.document import preferred
from ctrlmgr.server.describe.version_info import KUBERNETES
from ctrlmgr.server.pages.nonresource_pages import Page
from ctrlmgr.server.presenting.negotiation import PLAIN
from ctrlmgr.server.presenting.responses import Response, represented, text, warnings
from ctrlmgr.server.request import Request

_COMPONENT: Final = "apiserver"
_GROUP: Final = "config.k8s.io"
_DEPRECATED: Final = "v1alpha1"
_VERSIONS: Final = (_DEPRECATED, "v1beta1")
_DELIMITERS: Final = (":", ": ", "=", " ")
_NOT_DEBUGGING: Final = frozenset({"/apis", "/api", "/openid", "/openapi", "/.well-known"})
_RELEASE: Final = ".".join(map(str, KUBERNETES[:2]))
_TYPES: Final = "application/json, application/yaml, text/plain"
_HEAD: Final = """
{component} {page}
Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is for \
debugging purposes only.
"""


class _Form(NamedTuple):
    """The form of a response: plain text if `version` is empty, otherwise an object of this version."""

    version: str = ""
    yaml: bool = False


def zpages(
    flags: Mapping[str, str], paths: Callable[[], Iterable[str]], clock: Clock, random: Random
) -> dict[str, Page]:
    """Return the pages by path. The feature gates ComponentFlagz and ComponentStatusz determine which pages exist."""
    pages = {}
    if is_on("ComponentFlagz"):
        pages["/flagz"] = flagz_page(flags, random)
    if is_on("ComponentStatusz"):
        pages["/statusz"] = statusz_page(paths, clock, random)
    return pages


def flagz_page(flags: Mapping[str, str], random: Random) -> Page:
    """Return the page that shows the value of each flag by the name of the flag."""
    delimiter = random.choice(_DELIMITERS)
    lines = "".join(f"{name}{delimiter}{value}\n" for name, value in sorted(flags.items()))
    shown = _HEAD.format(component=_COMPONENT, page="flagz") + lines

    async def show(request: Request) -> Response:
        form = _form(request, "Flagz")
        return _object(request, form, "Flagz", {"flags": flags}) if form.version else text(200, shown)

    return show


def statusz_page(paths: Callable[[], Iterable[str]], clock: Clock, random: Random) -> Page:
    """Return the page that shows the start time, the versions and `paths`. The start time is the time of this call."""
    started = datetime.fromtimestamp(clock.now() // 1_000_000, UTC)
    began = clock.monotonic()

    async def show(request: Request) -> Response:
        form, seconds = _form(request, "Statusz"), int(clock.monotonic() - began)
        fields = {
            "startTime": started.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "uptimeSeconds": seconds,
            "goVersion": f"python{platform.python_version()}",
            "binaryVersion": _RELEASE,
            "emulationVersion": _RELEASE,
            "paths": _debugging(paths()),
        }
        if form.version:
            return _object(request, form, "Statusz", fields)
        return text(200, _status_text(fields, started, random.choice(_DELIMITERS)))

    return show


def _status_text(fields: Mapping[str, Any], started: datetime, delimiter: str) -> str:
    seconds = fields["uptimeSeconds"]
    rows = (
        ("Started", started.strftime("%a %b %e %H:%M:%S UTC %Y")),
        ("Up", f"{seconds // 3600} hr {seconds // 60 % 60:02} min {seconds % 60:02} sec"),
        ("Go version", fields["goVersion"]),
        ("Binary version", fields["binaryVersion"]),
        ("Emulation version", fields["emulationVersion"]),
        ("Paths", " ".join(fields["paths"])),
    )
    lines = "".join(f"{name}{delimiter} {value}\n" for name, value in rows)
    return _HEAD.format(component=_COMPONENT, page="statusz") + "\n" + lines


def _debugging(paths: Iterable[str]) -> list[str]:
    """Return the first segments of paths, without the segments of paths that only serve the API."""
    return sorted({f"/{path.split('/')[1]}" for path in paths if path.strip("/")} - _NOT_DEBUGGING)


def _object(request: Request, form: _Form, kind: str, fields: Mapping[str, Any]) -> Response:
    head = {"kind": kind, "apiVersion": f"{_GROUP}/{form.version}", "metadata": {"name": _COMPONENT}}
    how = PLAIN._replace(yaml=form.yaml, pretty=request.wants_pretty)
    response = represented(200, msgspec.json.encode({**head, **fields}) + b"\n", how)
    if form.version != _DEPRECATED:
        return response
    message = f"This version of the {kind.lower()} endpoint is deprecated. Please use a newer version."
    return response._replace(headers=(*response.headers, *warnings([message])))


def _form(request: Request, kind: str) -> _Form:
    """Return the first form of a page that the client accepts; raises `NotAcceptable` if there is none."""
    accept = request.header(b"accept").decode("latin-1")
    if not accept.strip():
        return _Form()
    for clause in preferred(accept):
        media_type, values = clause.media_type, clause.parameters
        if "as" not in values:
            if media_type in ("text/plain", "text/*", "*/*"):
                return _Form()
        elif (values["as"], values.get("g")) == (kind, _GROUP) and values.get("v") in _VERSIONS:
            if media_type in ("application/json", "application/*", "*/*"):
                return _Form(values["v"])
            if media_type == "application/yaml":
                return _Form(values["v"], yaml=True)
    raise NotAcceptable(f"only the following media types are accepted: {_TYPES}")

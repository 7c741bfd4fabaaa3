"""An operator that reads Services, written like operators of kopf's users; `kopf run` loads this module.

The operator keeps a file with the existing Services. If the environment variable CONVERTS is set, the operator also
marks each Service, and posts an Event.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import kopf

MARK = "example.com/converted"
STATE, CONVERTS = "OPERATOR_STATE", "OPERATOR_CONVERTS"

_state = Path(os.environ.get(STATE, ""))  # tests import this module for the names above
_known: dict[str, tuple[str, str]] = {}


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
    settings.posting.loggers = False


@kopf.index("v1", "services")
def ports(namespace: str | None, name: str, spec: kopf.Spec, **_: Any) -> dict[str, int]:
    return {f"{namespace}/{name}": len(spec.get("ports", []))}


@kopf.on.event("v1", "services")
async def look(event: kopf.RawEvent, meta: kopf.Meta, **kwargs: Any) -> None:
    uid = meta["uid"]  # if an object is created again, kopf may report this before the end of the previous object
    if event["type"] == "DELETED":
        _known.pop(uid, None)
    else:
        _known[uid] = (f"{meta['namespace']}/{meta['name']}", meta["resourceVersion"])
    written = _state.with_suffix(".new")
    written.write_text(json.dumps({"known": dict(_known.values()), "indexed": sorted(kwargs["ports"])}))
    written.replace(_state)


if os.environ.get(CONVERTS):

    @kopf.on.resume("v1", "services")
    @kopf.on.create("v1", "services")
    def convert(body: kopf.Body, patch: kopf.Patch, **_: Any) -> None:
        patch.metadata.annotations[MARK] = "yes"
        kopf.info(body, reason="Converted", message="it is ours now")

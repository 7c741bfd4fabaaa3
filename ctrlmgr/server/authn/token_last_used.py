"""Labels Secrets with the day on which their token was last used.

Guarantees: the server labels each Secret at most once a day, and does not retry a failed write of the label. No request
waits for the write of a label.

Source: Kubernetes' `pkg/serviceaccount/legacy.go` (`patchSecretWithLastUsedDate`), KEP-2799.
"""

from __future__ import annotations

import asyncio

import msgspec
import structlog

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Resource
from ctrlmgr.authentication.legacy_claims import LAST_USED
from ctrlmgr.authentication.user import API_SERVER
from ctrlmgr.clock import Clock, format_time_seconds
from ctrlmgr.engine.engine import Engine
from ctrlmgr.engine.operations import Target
from ctrlmgr.engine.request_options import MERGE_PATCH, Body, Requester, WriteOptions
from ctrlmgr.errors import CtrlmgrError
from ctrlmgr.server.event_loop_driver import Driver

log = structlog.get_logger(__name__)

_SECRETS = Resource("", "secrets")
_WRITER = Requester(API_SERVER.name, API_SERVER.groups, "kube-apiserver")


class LastUsedWriter:
    """Writes the label with the day of a token's last use. Used on the event loop's thread only."""

    def __init__(self, engine: Engine, driver: Driver, *, clock: Clock) -> None:
        """Create an instance that writes through `engine`, whose operations `driver` runs."""
        self._engine = engine
        self._driver = driver
        self._clock = clock
        self._noted: dict[str, str] = {}
        self._writing: set[asyncio.Task[None]] = set()

    def note(self, secret: Object) -> None:
        """Record that the token in the Secret `secret` is being used now."""
        today = format_time_seconds(self._clock.now())[: len("2006-01-02")]
        if secret.labels.get(LAST_USED) == today or self._noted.get(secret.uid) == today:
            return
        self._noted[secret.uid] = today
        task = asyncio.get_running_loop().create_task(self._write(secret, today))
        self._writing.add(task)
        task.add_done_callback(self._writing.discard)

    async def _write(self, secret: Object, today: str) -> None:
        kind = self._engine.kinds.stored(_SECRETS)
        if kind is None:
            return
        patch = {"metadata": {"uid": secret.uid, "labels": {LAST_USED: today}}}
        body, options = Body(MERGE_PATCH, msgspec.json.encode(patch)), WriteOptions(field_manager="kube-apiserver")
        try:
            target = Target(kind, secret.namespace, secret.name)
            await self._driver.run(self._engine.patch(target, body, options, _WRITER))
        except CtrlmgrError as error:
            log.info("recording token use failed", secret=str(secret.key), error=str(error))

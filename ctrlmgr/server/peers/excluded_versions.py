"""The versions of API groups that CustomResourceDefinitions and APIServices define; peers are not asked for them.

All processes read the same definitions, so a request for such a version is answered here. A discovery document of a
peer may be older than the deletion of a definition. Therefore a version stays excluded for `GRACE` seconds after its
definition was deleted.

Source: apiserver `pkg/util/peerproxy/gv_exclusion_manager.go`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from ctrlmgr.api.resource import DEFINITIONS
from ctrlmgr.clock import Clock
from ctrlmgr.engine.aggregated_groups import API_SERVICES
from ctrlmgr.engine.calls.remote_services import remote_services
from ctrlmgr.engine.watch_cache.cacher import Cacher

GRACE: Final = 300.0
"""Seconds for which the version of a deleted definition stays excluded (`defaultExclusionGracePeriod`)."""


class _Version(msgspec.Struct):
    name: str = ""


class _Spec(msgspec.Struct):
    group: str = ""
    versions: list[_Version] | None = None


class _Definition(msgspec.Struct):
    spec: _Spec


class ExcludedVersions:
    """The versions that are never forwarded. Changed on the event loop's thread only; any thread may read them."""

    def __init__(self, cacher: Cacher, *, clock: Clock) -> None:
        """Create an instance that follows the definitions in `cacher`."""
        self.epoch = 0
        """A number that increases with each change."""
        self._cacher = cacher
        self._clock = clock
        self._defined: frozenset[tuple[str, str]] = frozenset()
        self._deleted: dict[tuple[str, str], float] = {}
        cacher.follow(DEFINITIONS, self._update)
        cacher.follow(API_SERVICES, self._update)

    def __contains__(self, version: object) -> bool:
        """Return whether a group and version is excluded."""
        return version in self._defined or version in self._deleted

    def refresh(self) -> None:
        """Drop versions whose time has passed; the server calls this about once a second."""
        now = self._clock.monotonic()
        kept = {version: since for version, since in self._deleted.items() if now - since < GRACE}
        if kept != self._deleted:
            self._deleted = kept
            self.epoch += 1

    def _update(self) -> None:
        defined = frozenset(self._versions())
        if defined != self._defined:
            now = self._clock.monotonic()
            self._deleted = {**self._deleted, **dict.fromkeys(self._defined - defined, now)}
            self._defined = defined
            self.epoch += 1

    def _versions(self) -> Iterator[tuple[str, str]]:
        for each in self._cacher.list(DEFINITIONS):
            spec = each.view(_Definition).spec
            yield from ((spec.group, version.name) for version in spec.versions or ())
        yield from remote_services(self._cacher.list(API_SERVICES))

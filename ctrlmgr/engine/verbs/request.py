"""One write as the engine carries it along: what it is about, who asks for it, what is said on the way."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.cacher import Cacher
from ctrlmgr.engine.names import Timestamps
from ctrlmgr.engine.operations import Target
from ctrlmgr.engine.options import Requester, WriteOptions
from ctrlmgr.engine.strategy import Context
from ctrlmgr.engine.verbs.plan import Plan


class Request:
    """A write under way; `warnings` are those that hold whatever its attempts come to."""

    __slots__ = ("cacher", "now", "options", "plan", "random", "requester", "target", "warnings")

    def __init__(
        self,
        plan: Plan,
        target: Target,
        options: WriteOptions,
        requester: Requester,
        *,
        cacher: Cacher,
        timestamps: Timestamps,
        random: Random,
    ) -> None:
        """Carry out `options` on `target` for `requester`."""
        self.plan = plan
        self.target = target
        self.options = options
        self.requester = requester
        self.cacher = cacher
        self.random = random
        self.now = timestamps.now()
        self.warnings: list[str] = []

    def current(self) -> Object | None:
        """Return what is there now, as stored."""
        return self.cacher.get(self.plan.storage, Key(self.target.namespace, self.target.name))

    def context(self, old: Unstructured | None = None) -> Context:
        """Return what a strategy sees of this attempt."""
        return Context(
            kind=self.plan.kind,
            view=self.cacher,
            now=self.now,
            random=self.random,
            user=self.requester.user,
            subresource=self.target.subresource,
            dry_run=self.options.dry_run,
            old=old,
        )

    @property
    def manager(self) -> str:
        """Whose the fields are that this write sets."""
        return self.options.field_manager or self.requester.manager

    def told(self, ctx: Context | None = None) -> Sequence[str]:
        """Return all warnings, each once (apiserver `endpoints/filters/warning.go`)."""
        if ctx is None or not ctx.warnings:
            return self.warnings if len(self.warnings) < 2 else list(dict.fromkeys(self.warnings))
        return list(dict.fromkeys([*self.warnings, *ctx.warnings]))

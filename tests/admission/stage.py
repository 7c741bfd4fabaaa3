"""Runs one admission plugin or a chain of plugins on a single write, with attributes and stored objects that a test
creates.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from random import Random
from typing import Any

from ctrlmgr.admission.admission_plugin import Decision, Plugin
from ctrlmgr.api.object import Object
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.admission_attributes import Attributes, Verb
from ctrlmgr.engine.request_options import Requester
from tests.kinds.stage import NOW, Objects, find_kind


class Write:
    """A write to the kind at `path` (`v1/pods`), in the form that the engine passes to admission; `existing` are other
    stored objects.
    """

    def __init__(
        self,
        path: str,
        new: Mapping[str, Any] | None = None,
        old: Mapping[str, Any] | None = None,
        *existing: Mapping[str, Any],
        operation: Verb | None = None,
        subresource: str = "",
        requester: Requester | None = None,
        dry_run: bool = False,
    ) -> None:
        kind = find_kind(path)
        by_state = {(True, False): Verb.CREATE, (True, True): Verb.UPDATE, (False, True): Verb.DELETE}
        states = [self._named(each, namespaced=kind.namespaced) for each in (new, old)]
        name = (states[0] or states[1] or {"metadata": {}})["metadata"].get("name", "")
        self.attributes = Attributes(
            kind,
            kind.resource,
            "default" if kind.namespaced else name if kind.name == "Namespace" else "",
            name,
            operation or by_state.get((new is not None, old is not None), Verb.CONNECT),
            requester or Requester("alice", ("developers",)),
            Objects(Object.from_dict(each) for each in existing),
            NOW,
            Random(1),
            states[0],
            states[1],
            subresource,
            dry_run=dry_run,
        )

    def _named(self, fields: Mapping[str, Any] | None, *, namespaced: bool) -> Unstructured | None:
        if fields is None:
            return None
        made: Unstructured = copy.deepcopy(dict(fields))
        metadata = made.setdefault("metadata", {})
        if "generateName" not in metadata:
            metadata.setdefault("name", "x")
        if namespaced:
            metadata.setdefault("namespace", "default")
        return made

    def admit(self, *plugins: Plugin) -> Unstructured:
        """Run the mutating and the validating half of plugins; return the object, or raise the error with which a
        plugin refuses the write.
        """
        made = self.attributes
        handling = [each for each in plugins if each.handles(made.resource, made.subresource, made.operation)]
        for plugin in handling:
            _finish(plugin.admit(made))
        for plugin in handling:
            _finish(plugin.validate(made))
        return made.object or {}


def _finish(decision: Decision) -> None:
    """Run a plugin until it has finished; fail if the plugin yields a command to the engine."""
    assert decision is None or next(decision, None) is None

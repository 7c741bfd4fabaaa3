"""A cluster with the controller of CustomResourceDefinitions, and CustomResourceDefinitions for tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import DEFINITIONS as DEFINITIONS_RESOURCE
from ctrlmgr.controllers.customresourcedefinitions.controller import new_definition_controller
from ctrlmgr.controllers.namespace import Options
from ctrlmgr.controllers.namespace.controller import build
from ctrlmgr.engine.calls.call import Call, Reply
from ctrlmgr.extensions.canonical_schema import canonicalize
from ctrlmgr.extensions.definition_defaults import prepare_new, set_defaults
from ctrlmgr.informer import Informers
from ctrlmgr.manager import Controller
from tests.controllers.stage_context import StageContext
from tests.controllers.worked_stage import MERGE, WorkedStage
from tests.engine.stage import Response

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GROUP = "example.com"
NAME = f"widgets.{GROUP}"
WIDGETS = f"/apis/{GROUP}/v1/namespaces/shop/widgets"

SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {"size": {"type": "integer", "default": 3, "minimum": 1}, "color": {"type": "string"}},
        },
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
}


def version(name: str = "v1", **fields: Any) -> dict[str, Any]:
    """Return a served version of a CustomResourceDefinition; by default, it is the stored version."""
    return {"name": name, "served": True, "storage": True, "schema": {"openAPIV3Schema": SCHEMA}, **fields}


def definition(
    plural: str = "widgets", kind: str = "Widget", versions: Sequence[Any] = (), **names: Any
) -> dict[str, Any]:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind, **names},
            "versions": [*(versions or [version()])],
        },
    }


def widget(name: str = "a", api_version: str = f"{GROUP}/v1", **fields: Any) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": "Widget", "metadata": {"name": name}, **fields}


def established(fields: dict[str, Any]) -> Object:
    """Return an established CustomResourceDefinition in its stored form."""
    canonicalize(fields["spec"])
    set_defaults(fields)
    prepare_new(fields)
    fields["metadata"]["uid"] = "1"
    fields["status"] |= {
        "acceptedNames": fields["spec"]["names"],
        "conditions": [{"type": "Established", "status": "True"}],
    }
    return Object(DEFINITIONS_RESOURCE, msgspec.json.encode(fields))


class DefinedStage(WorkedStage):
    """A cluster with a namespace; the test reconciles the cluster's CustomResourceDefinitions with `work`."""

    def __init__(self, caller: Callable[[Call], Reply] | None = None) -> None:
        super().__init__(
            lambda stage: new_definition_controller(
                stage.informers, stage.apiserver_client, stage.log, clock=stage.clock, random=stage.random
            ),
            caller=caller,
        )
        self.namespace("shop")

    def define(self, fields: Mapping[str, Any] | None = None) -> Response:
        """Create a CustomResourceDefinition, and reconcile it."""
        created = self.send("POST", DEFINITIONS, fields or definition())
        self.work()
        return created

    def redefine(self, patch: Mapping[str, Any], name: str = NAME) -> Response:
        changed = self.send("PATCH", f"{DEFINITIONS}/{name}", patch, media_type=MERGE)
        self.work()
        return changed

    def conditions(self, name: str = NAME) -> dict[str, tuple[str, str]]:
        """Return the status and reason of each condition of a CustomResourceDefinition, by condition type."""
        conditions = self.send("GET", f"{DEFINITIONS}/{name}").body["status"]["conditions"]
        return {each["type"]: (each["status"], each["reason"]) for each in conditions}


class EverythingStage(DefinedStage):
    """A cluster with the controller under test and the controller of CustomResourceDefinitions."""

    def start(self) -> None:
        super().start()
        self.informers = Informers(self.log, self.feed, clock=self.clock)
        self.definitions, self.controller = self.controller, self.made()
        self.informers.sync()
        self.controller.start()

    def made(self) -> Controller:
        raise NotImplementedError

    def define(self, fields: Mapping[str, Any] | None = None) -> None:  # type: ignore[override]  # as it returns nothing
        """Create a CustomResourceDefinition, and let the controller in another process establish it."""
        other = DefinedStage.__new__(DefinedStage)
        other.__dict__.update(self.__dict__)
        WorkedStage.start(other)
        DefinedStage.define(other, fields)
        self.work()


class NamespaceStage(EverythingStage):
    def made(self) -> Controller:
        return build(StageContext(self), Options(namespace_deletion_grace=0))

"""Plugins that look at changes of pods, and that have a say in what becomes of them."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import ClassVar

from ctrlmgr.admission.plugin import Plugin
from ctrlmgr.api.resource import PODS, Resource
from ctrlmgr.engine.attributes import Attributes, Verb
from ctrlmgr.engine.late import Late


class Judging(Plugin):
    """Counts the pods that are created or changed."""

    name: ClassVar[str] = "Judging"

    def __init__(self, operation: Verb = Verb.UPDATE) -> None:
        self.seen: list[str] = []
        self._operation = operation

    def handles(self, resource: Resource, subresource: str, operation: Verb) -> bool:
        return resource == PODS and operation is self._operation

    def validate(self, attributes: Attributes) -> None:
        self.seen.append(attributes.called())


class Telling(Judging):
    """Tells the audit log of every change, and says that it goes by nothing but that."""

    name: ClassVar[str] = "Telling"

    def __init__(self, told: str) -> None:
        super().__init__()
        self._told = told

    def rests_on(self, attributes: Attributes) -> Collection[Resource]:
        return ()

    def validate(self, attributes: Attributes) -> None:
        super().validate(attributes)
        attributes.annotations["told"] = self._told.format(name=attributes.called())


class Changing(Judging):
    """Changes what it sees, though it says that it goes by nothing of it."""

    name: ClassVar[str] = "Changing"

    def __init__(self, change: Callable[[Attributes], None]) -> None:
        super().__init__()
        self._change = change

    def rests_on(self, attributes: Attributes) -> Collection[Resource]:
        return ()

    def admit(self, attributes: Attributes) -> None:
        self._change(attributes)


def name_it(attributes: Attributes) -> None:
    if attributes.fields["status"]["phase"] == "Running":
        attributes.fields["status"]["message"] = attributes.called()


def say_so(attributes: Attributes) -> None:
    attributes.fields["status"]["message"] = "changed"
    attributes.changed("Changing")


def label_it(attributes: Attributes) -> None:
    attributes.fields["metadata"]["labels"] = {"new": "label"}


def decide_late(attributes: Attributes) -> None:
    attributes.late.append(Late("here", lambda view: ()))

"""Tests of admission for requests that are answered and not stored, such as token requests."""

from __future__ import annotations

from typing import Any, ClassVar

from ctrlmgr.admission.admission_chain import Chain
from ctrlmgr.admission.admission_plugin import Plugin
from ctrlmgr.api.resource import Resource
from ctrlmgr.engine.admission_attributes import Attributes, Verb
from ctrlmgr.engine.operations import Target
from ctrlmgr.engine.request_options import WriteOptions
from ctrlmgr.testing import FakeClock
from ctrlmgr.testing.stage import REQUESTER, Stage
from tests.kinds.stage import KINDS

ACCOUNTS = Resource("", "serviceaccounts")


class AudienceRecorder(Plugin):
    """A plugin that records the requested token audiences in its mutating and in its validating half."""

    name: ClassVar[str] = "Looking"

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def handles(self, resource: Resource, subresource: str, operation: Verb) -> bool:
        return (resource, subresource) == (ACCOUNTS, "token")

    def admit(self, attributes: Attributes) -> None:
        self.seen.append(attributes.fields["spec"].get("audiences"))

    def validate(self, attributes: Attributes) -> None:
        self.seen.append(attributes.fields["spec"].get("audiences"))


def test_defaults_are_applied_after_the_mutating_plugins() -> None:
    looking = AudienceRecorder()
    stage = Stage(admission=Chain([looking], FakeClock()), kinds=KINDS)
    kind = stage.kinds.stored(ACCOUNTS)
    assert kind is not None
    request: dict[str, Any] = {"spec": {}}

    def complete(body: dict[str, Any]) -> None:
        body["spec"]["audiences"] = ["ours"]

    target = Target(kind, "default", "builder", "token")
    stage.driver.run(stage.engine.admit(target, Verb.CREATE, request, None, WriteOptions(), REQUESTER, complete))
    assert looking.seen == [None, ["ours"]]
    assert request["spec"]["audiences"] == ["ours"], "and that is what is answered"

"""Property test: after any sequence of writes, compactions and reads, the informers' stores and all indexes equal the
log.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import PODS, SERVICES, Key
from ctrlmgr.errors import Expired
from ctrlmgr.informer import Change, EventWindow, Informer, Informers
from ctrlmgr.testing import FakeClock
from tests.informer.shared_log import SharedLog, thing

NAMES = ("a", "b", "c")
NAMESPACES = ("blue", "red")
APPS = ("web", "db")
LABELS: tuple[Mapping[str, str], ...] = (
    {},
    {"app": "web"},
    {"app": "db"},
    {"app": "web", "tier": "x"},
    {"app": "db", "tier": "x"},
)

names = st.sampled_from(NAMES)
namespaces = st.sampled_from(NAMESPACES)
kinds = st.sampled_from(["Pod", "Service", "Secret"])


class InformersEqualTheLog(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        clock = FakeClock()
        self.log = SharedLog(clock=clock)
        self.informers = Informers(self.log, EventWindow(self.log, capacity=4, clock=clock), clock=clock)
        self.pods = self.informers.informer(PODS)
        self.pods.add_label_index()
        self.pods.add_index("tier", lambda obj: [obj.labels["tier"]] if "tier" in obj.labels else [])
        self.services = self.informers.informer(SERVICES)  # without a label index
        self.told: dict[Key, Object] = {}
        self.pods.add_handler(self.on_change)
        self.informers.sync()

    def on_change(self, change: Change) -> None:
        """Check that each change of an object follows the previous change of the same object, and apply the change."""
        obj = change.new or change.old
        assert obj is not None
        assert self.told.get(obj.key) is change.old
        if change.new is None:
            del self.told[obj.key]
        else:
            self.told[obj.key] = change.new

    @rule(name=names, namespace=namespaces, kind=kinds, labels=st.sampled_from(LABELS), here=st.booleans())
    def put(self, name: str, namespace: str, kind: str, labels: Mapping[str, str], here: bool) -> None:
        with nullcontext() if here else self.log.elsewhere():
            self.log.put(thing(name, namespace, kind=kind, labels=labels))

    @rule(name=names, namespace=namespaces, kind=kinds, here=st.booleans())
    def remove(self, name: str, namespace: str, kind: str, here: bool) -> None:
        obj = thing(name, namespace, kind=kind)
        if self.log.get(obj.resource, obj.key) is not None:
            with nullcontext() if here else self.log.elsewhere():
                self.log.remove(obj)

    @rule(behind=st.integers(0, 5), keep=st.integers(1, 2))
    def compact(self, behind: int, keep: int) -> None:
        self.log.compact(max(0, self.log.head().revision - behind), keep=keep)

    @rule(limit=st.integers(1, 4))
    def step(self, limit: int) -> None:
        try:
            self.informers.step(limit)
        except Expired:
            self.informers.sync()

    @rule()
    def sync(self) -> None:
        self.informers.sync()

    @invariant()
    def stores_are_the_log_at_their_revision(self) -> None:
        for informer in (self.pods, self.services):
            try:
                state = self.log.snapshot(informer.resource, at=self.informers.revision)
            except Expired:
                continue
            self.compare(informer, state.objects)

    def teardown(self) -> None:
        put_here = thing("last")
        self.log.put(put_here)
        while self.informers.revision < self.log.head().revision:
            self.step(500)
        self.stores_are_the_log_at_their_revision()

    def compare(self, informer: Informer, state: list[Object]) -> None:
        lister = informer.lister
        assert [(obj.key, obj.revision) for obj in lister.list()] == [(obj.key, obj.revision) for obj in state]
        assert len(lister) == len(state)
        for namespace in (None, *NAMESPACES):
            local = [obj for obj in state if namespace in (None, obj.namespace)]
            assert lister.list(namespace) == local
            for labels in LABELS:
                assert lister.list(namespace, labels) == [o for o in local if labels.items() <= o.labels.items()]
        if informer is self.pods:
            assert lister.by_index("tier", "x") == [obj for obj in state if "tier" in obj.labels]
            assert self.told == {obj.key: obj for obj in state}


TestInformersEqualTheLog = InformersEqualTheLog.TestCase
TestInformersEqualTheLog.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)

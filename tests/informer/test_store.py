from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping

import pytest

from ctrlmgr import threads
from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key
from ctrlmgr.informer import Lister, Store
from tests.informer.shared_log import thing


def names(objects: list[Object]) -> list[str]:
    return [str(obj.key) for obj in objects]


WEB = {"app": "web", "tier": "front"}
DB = {"app": "db", "tier": "back"}
OBJECTS = [
    thing("c", "blue", labels=WEB),
    thing("a", "blue", labels={**WEB, "canary": "yes"}),
    thing("b", "blue", labels=DB),
    thing("a", "red", labels=WEB),
    thing("z", "red"),
]


def applied(store: Store) -> Store:
    for obj in OBJECTS:
        store.apply(obj.key, obj)
    return store


def replaced(store: Store) -> Store:
    store.replace(OBJECTS)
    return store


def indexed() -> Store:
    store = Store()
    store.add_label_index()
    return store


def indexed_late() -> Store:
    store = applied(Store())
    store.add_label_index()
    return store


STORES = [
    pytest.param(lambda: applied(Store()), id="applied one by one, labels filtered"),
    pytest.param(lambda: replaced(Store()), id="replaced at once, labels filtered"),
    pytest.param(lambda: applied(indexed()), id="applied one by one, labels indexed"),
    pytest.param(lambda: replaced(indexed()), id="replaced at once, labels indexed"),
    pytest.param(indexed_late, id="labels indexed after the objects were there"),
]
LISTS = [
    pytest.param(None, None, ["blue/a", "blue/b", "blue/c", "red/a", "red/z"], id="everything is sorted by key"),
    pytest.param("red", None, ["red/a", "red/z"], id="one namespace"),
    pytest.param("green", None, [], id="a namespace nobody lives in"),
    pytest.param("blue", {"app": "web"}, ["blue/a", "blue/c"], id="one label in one namespace"),
    pytest.param("blue", {"app": "web", "canary": "yes"}, ["blue/a"], id="all labels must match"),
    pytest.param("blue", {"app": "web", "tier": "back"}, [], id="labels that exist but never together"),
    pytest.param(None, {"app": "web"}, ["blue/a", "blue/c", "red/a"], id="a label across namespaces"),
    pytest.param("blue", {"app": "nobody"}, [], id="a value nobody has"),
    pytest.param("blue", {"canary": ""}, [], id="a missing label is not an empty one"),
    pytest.param("red", {}, ["red/a", "red/z"], id="no labels match anything"),
]


@pytest.mark.parametrize("make", STORES)
@pytest.mark.parametrize(("namespace", "labels", "expected"), LISTS)
def test_list(make: type[Store], namespace: str | None, labels: Mapping[str, str] | None, expected: list[str]) -> None:
    lister: Lister = make()
    assert names(lister.list(namespace, labels)) == expected


def test_apply_returns_the_previous_object() -> None:
    store = Store()
    first, second = thing("a"), thing("a", note="2")
    assert store.apply(first.key, first) is None
    assert store.apply(first.key, second) is first
    assert store.get(Key("default", "a")) is second
    assert store.apply(first.key, None) is second
    assert store.apply(first.key, None) is None
    assert store.get(Key("default", "a")) is None
    assert len(store) == 0
    assert store.list("default") == []


def test_an_index_follows_changes_of_its_values() -> None:
    store = Store()
    store.add_index("words", lambda obj: obj.to_dict()["note"].split())
    store.apply(Key("default", "a"), thing("a", note="x y y"))
    store.apply(Key("default", "b"), thing("b", note="y"))
    assert names(store.by_index("words", "y")) == ["default/a", "default/b"]
    store.apply(Key("default", "a"), thing("a", note="z x"))
    assert names(store.by_index("words", "y")) == ["default/b"]
    assert names(store.by_index("words", "x")) == ["default/a"]
    store.apply(Key("default", "b"), None)
    assert store.by_index("words", "y") == []


def test_an_index_returns_the_current_object() -> None:
    store = Store()
    store.add_index("all", lambda obj: ["same"])
    newer = thing("a", note="newer")
    store.apply(newer.key, thing("a"))
    store.apply(newer.key, newer)
    assert store.by_index("all", "same") == [newer]


def test_an_unknown_index_is_a_key_error() -> None:
    with pytest.raises(KeyError, match="nope"):
        Store().by_index("nope", "x")


def test_replace_swaps_objects_and_indexes() -> None:
    store = applied(indexed())
    store.add_index("name", lambda obj: [obj.name])
    before, after = store.replace([thing("n", "blue", labels=DB)])
    assert sorted(before) == sorted(obj.key for obj in OBJECTS)
    assert list(after) == [Key("blue", "n")]
    assert names(store.list()) == names(store.list("blue", DB)) == names(store.by_index("name", "n")) == ["blue/n"]
    assert store.list("red") == store.list("blue", WEB) == store.by_index("name", "a") == []


def test_a_failing_index_function_leaves_the_store_unchanged() -> None:
    store = Store()
    store.add_index("note", lambda obj: [obj.to_dict()["note"][0]])
    good = thing("a", note="x")
    store.apply(good.key, good)
    with pytest.raises(IndexError):
        store.apply(good.key, thing("a", note=""))
    assert store.get(good.key) is good
    assert store.by_index("note", "x") == [good]


def test_loading_keeps_nothing_decoded() -> None:
    store = indexed()
    obj = thing("a", labels=WEB)
    store.replace([obj])
    assert obj._metadata is None
    assert store.list("default", WEB) == [obj]
    assert obj._metadata is None  # only the index was read


def test_unused_index_values_are_removed() -> None:
    store = applied(indexed())
    for obj in OBJECTS:
        store.apply(obj.key, None)
    assert store._by_namespace.postings == {}
    assert store._by_label is not None
    assert store._by_label.postings == {}


@pytest.fixture
def eager_threads() -> Iterator[None]:
    """Make the interpreter switch threads as often as possible, so that a missing lock causes a failure."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("eager_threads")
def test_readers_never_see_a_partial_event() -> None:
    store = indexed()
    store.add_index("side", lambda obj: [obj.labels["side"]])
    left = [thing(f"{n}", labels={"side": "left", "n": str(n)}) for n in range(20)]
    right = [thing(f"{n}", labels={"side": "right", "n": str(n)}) for n in range(20)]
    store.replace(left)
    wrong: list[object] = []
    done = False

    def read() -> None:
        try:
            read_until_done()
        except (KeyError, RuntimeError) as error:
            wrong.append(error)

    def read_until_done() -> None:
        while not done:
            for side in ("left", "right"):
                for found in (store.list("default", {"side": side}), store.by_index("side", side)):
                    wrong.extend(obj for obj in found if obj.labels["side"] != side)
            if not 19 <= len(store.list("default")) <= 20 or not 19 <= len(store.list()) <= 20:
                wrong.append("an object is missing")

    readers = [threads.start(f"reader {n}", read) for n in range(3)]
    for _ in range(30):
        for there, here in zip(right, left, strict=True):
            store.apply(there.key, there)
            store.apply(here.key, None)
            store.apply(here.key, there)
        store.replace(left)
    done = True
    for reader in readers:
        reader.join(10)
        assert not reader.is_alive()
    assert wrong == []

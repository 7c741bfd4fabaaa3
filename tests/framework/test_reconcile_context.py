"""Tests of the context of a reconcile, and of the effects of a reconcile's result, with small apps in the harness."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any

import pytest

from ctrlmgr import App, Cache, Context, Key, Kind, Metadata, Model, Result, Status, TerminalError, Untyped, Watch
from ctrlmgr.errors import Conflict, OutcomeUnknown
from ctrlmgr.testing import Harness

CONFIG = "v1/ConfigMap"


class WidgetSpec(Model):
    size: int = 1
    secret: str = ""


class WidgetStatus(Status):
    size: int = 0


class Widget(Kind, api_version="toys.example.com/v1"):
    spec: WidgetSpec = WidgetSpec()
    status: WidgetStatus = WidgetStatus()


def widget(name: str = "a", **spec: Any) -> Widget:
    return Widget(metadata=Metadata(name=name), spec=WidgetSpec(**spec))


def config(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def cluster(reconcile: Callable[[Widget, Context], Result | None], *, strict: bool = True, **options: Any) -> Harness:
    app = App("widgets")
    app.controller(Widget, name="widgets", **options)(reconcile)
    return Harness(app, strict=strict)


def test_omitted_fields_are_removed() -> None:
    def reconcile(obj: Widget, context: Context) -> None:
        context.apply(config("made", **{f"key-{number}": "x" for number in range(obj.spec.size)}))

    harness = cluster(reconcile, owns=[CONFIG])
    harness.create(widget(size=3))
    harness.settle()
    made = harness.get(CONFIG, "made")
    assert made is not None
    assert len(made["data"]) == 3
    harness.patch(CONFIG, "made", {"data": {"mine": "y"}})
    harness.patch(Widget, "a", {"spec": {"size": 1}})
    harness.settle()
    made = harness.get(CONFIG, "made")
    assert made is not None
    assert made["data"] == {"key-0": "x", "mine": "y"}


def test_a_child_of_another_owner_is_not_changed() -> None:
    def reconcile(obj: Widget, context: Context) -> None:
        context.apply(config("shared", of=obj.name))

    harness = cluster(reconcile, owns=[CONFIG], strict=False)
    harness.create(widget("a"))
    harness.settle()
    harness.create(widget("b"))
    for _ in range(4):
        harness.advance(10)
    shared = harness.get(CONFIG, "shared")
    assert shared is not None
    assert shared["data"] == {"of": "a"}
    assert [each[:2] for each in harness.events(Widget, "b")] == [("Warning", "ReconcileFailed")] * len(
        harness.events(Widget, "b")
    )
    assert "controlled by Widget a" in harness.events(Widget, "b")[0].message


def test_owned_objects_are_listed_and_deleted() -> None:
    def reconcile(obj: Widget, context: Context) -> None:
        wanted = {f"{obj.name}-{number}" for number in range(obj.spec.size)}
        for name in sorted(wanted):
            context.apply(config(name))
        for each in context.owned(CONFIG):
            if each.name not in wanted:
                context.delete(each)

    harness = cluster(reconcile, owns=[CONFIG])
    harness.create(widget("a", size=3))
    harness.create(widget("b", size=1))
    harness.settle()
    harness.patch(Widget, "a", {"spec": {"size": 1}})
    harness.settle()
    assert [each.name for each in harness.list(CONFIG)] == ["a-0", "b-0"]


def test_objects_without_an_owner_are_applied_anywhere() -> None:
    def reconcile(obj: Widget, context: Context) -> None:
        context.apply({**config("far"), "metadata": {"name": "far", "namespace": "kept"}}, owned=False)

    harness = cluster(reconcile)
    harness.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kept"}})
    harness.create(widget())
    harness.settle()
    far = harness.get(CONFIG, "far", namespace="kept")
    assert far is not None
    assert far.metadata.owner_references == []


@pytest.mark.parametrize(
    ("child", "message"),
    [
        ({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}}, "has no name"),
        ({"apiVersion": "v1", "metadata": {"name": "x"}}, "a manifest has no kind"),
        ({**config("far"), "metadata": {"name": "far", "namespace": "kept"}}, "cannot be owned from namespace default"),
    ],
)
def test_an_apply_error_names_its_reason(child: dict[str, Any], message: str) -> None:
    def reconcile(obj: Widget, context: Context) -> None:
        context.apply(child)

    harness = cluster(reconcile)
    harness.create(widget())
    with pytest.raises(AssertionError, match=message):
        harness.settle()


def test_undeclared_caches_are_refused_by_name() -> None:
    def reconcile(obj: Widget, context: Context) -> None:
        context.get("v1/Secret", "x")

    harness = cluster(reconcile)
    harness.create(widget())
    with pytest.raises(AssertionError, match="has no cache of v1/Secret: name it in owns=, watches= or reads="):
        harness.settle()


def test_a_watch_enqueues_the_related_objects() -> None:
    def users(secret: Untyped, cache: Cache) -> Iterable[Widget]:
        return [each for each in cache.list(Widget, secret.namespace) if each.spec.secret == secret.name]

    def reconcile(obj: Widget, context: Context) -> None:
        secret = context.get("v1/Secret", obj.spec.secret)
        obj.status.size = 0 if secret is None else len(secret["data"])

    harness = cluster(reconcile, watches=[Watch("v1/Secret", users)])
    harness.create(widget("a", secret="s"))
    harness.create(widget("b", secret="t"))
    harness.settle()
    harness.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"k": "eA=="}})
    harness.settle()
    assert [each.status.size for each in harness.list(Widget)] == [1, 0]
    harness.delete("v1/Secret", "s")
    harness.settle()
    assert [each.status.size for each in harness.list(Widget)] == [0, 0]


@pytest.mark.parametrize("target", ["a", Key("default", "a")])
def test_a_watch_maps_to_objects_or_keys(target: Any) -> None:
    seen: list[str] = []

    def reconcile(obj: Widget, context: Context) -> None:
        seen.append(obj.name)

    harness = cluster(reconcile, watches=[Watch(CONFIG, lambda obj, cache: [target])])
    harness.create(widget("a"))
    harness.settle()
    seen.clear()
    harness.create(config("any"))
    harness.settle()
    assert seen == ["a"]


def test_a_failing_mapping_does_not_affect_others() -> None:
    def broken(obj: Untyped, cache: Cache) -> list[str]:
        raise ValueError("no")

    seen: list[str] = []

    def reconcile(obj: Widget, context: Context) -> None:
        seen.append(obj.name)

    harness = cluster(reconcile, watches=[Watch(CONFIG, broken)])
    harness.create(config("any"))
    harness.create(widget("a"))
    harness.settle()
    assert set(seen) == {"a"}


def test_a_failing_reconcile_writes_its_status() -> None:
    def reconcile(obj: Widget, context: Context) -> None:
        context.condition("Ready", False, "Broken", "it is")
        raise ValueError("broken")

    harness = cluster(reconcile, strict=False)
    harness.create(widget())
    harness.settle()
    found = harness.get(Widget, "a")
    assert found is not None
    assert [(each.type, each.status, each.reason) for each in found.status.conditions] == [("Ready", "False", "Broken")]


def test_a_condition_keeps_its_transition_time() -> None:
    def reconcile(obj: Widget, context: Context) -> Result:
        context.condition("Ready", obj.spec.size > 1, "Size", str(obj.spec.size))
        return Result(requeue_after=60)

    harness = cluster(reconcile)
    harness.create(widget())
    harness.settle()
    harness.advance(60)
    first = harness.get(Widget, "a")
    harness.patch(Widget, "a", {"spec": {"size": 2}})
    harness.settle()
    second = harness.get(Widget, "a")
    assert first is not None
    assert second is not None
    times = [each.status.conditions[0].last_transition_time for each in (first, second)]
    assert times == ["2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"]


def test_failures_are_retried_with_backoff_and_reported_from_the_third_on() -> None:
    attempts: list[int] = []

    def reconcile(obj: Widget, context: Context) -> None:
        attempts.append(context.now())
        raise ValueError("no luck")

    harness = cluster(reconcile, strict=False)
    harness.create(widget())
    harness.settle()
    assert len(attempts) == 1
    assert harness.events(Widget, "a") == []
    while len(attempts) < 3:
        harness.advance(0.005)
    pauses = [(later - earlier) / 1e6 for earlier, later in pairwise(attempts)]
    assert pauses == sorted(pauses)
    assert [each[:3] for each in harness.events(Widget, "a")] == [("Warning", "ReconcileFailed", "ValueError: no luck")]
    assert [error[:2] for error in harness.errors] == [("widgets", "default/a")] * 3


def test_a_permanent_error_is_reported_at_once_and_not_retried() -> None:
    attempts: list[str] = []

    def reconcile(obj: Widget, context: Context) -> None:
        attempts.append(obj.name)
        raise TerminalError("never")

    harness = cluster(reconcile, strict=False)
    harness.create(widget())
    harness.advance(1000)
    assert attempts == ["a"]
    assert harness.events(Widget, "a")[0].message == "TerminalError: never"


def test_no_exception_ends_the_process() -> None:
    def reconcile(obj: Widget, context: Context) -> None:
        raise SystemExit(3)

    harness = cluster(reconcile, strict=False)
    harness.create(widget())
    harness.settle()
    assert str(harness.errors[0][2]) == "the controller called sys.exit(3)"


def test_the_result_of_a_reconcile_is_checked() -> None:
    harness = cluster(lambda obj, context: 5)  # type: ignore[arg-type, return-value]  # that is what is tested
    harness.create(widget())
    with pytest.raises(AssertionError, match="returned 5, not a Result or None"):
        harness.settle()


def test_a_reconcile_is_repeated_at_the_requested_interval() -> None:
    seen: list[float] = []

    def reconcile(obj: Widget, context: Context) -> None:
        seen.append(context.now())

    harness = cluster(reconcile, resync=30.0)
    harness.create(widget())
    harness.settle()
    start = len(seen)
    for _ in range(4):
        harness.advance(30)
    assert len(seen) == start + 4


def test_a_finalizer_holds_an_object_until_the_cleanup_is_done() -> None:
    app, bucket = App("buckets"), {"there": True}

    @app.controller(Widget)
    def widgets(obj: Widget, context: Context) -> None:
        assert "example.com/bucket" in harness_finalizers(harness)

    @widgets.finalize("example.com/bucket")
    def cleanup(obj: Widget, context: Context) -> Result | None:
        context.condition("Ready", False, "Emptying")
        return Result(requeue_after=5) if bucket["there"] else None

    harness = Harness(app)
    harness.create(widget())
    harness.settle()
    harness.delete(Widget, "a")
    harness.settle()
    held = harness.get(Widget, "a")
    assert held is not None
    assert held.is_terminating
    assert held.status.conditions[0].reason == "Emptying"
    bucket["there"] = False
    harness.advance(5)
    assert harness.get(Widget, "a") is None


def harness_finalizers(harness: Harness) -> list[str]:
    found = harness.get(Widget, "a")
    assert found is not None
    return found.metadata.finalizers


@pytest.mark.parametrize("lost", [False, True])
@pytest.mark.parametrize("error", [Conflict("another was quicker"), OutcomeUnknown()])
def test_injected_faults_only_delay(error: Exception, lost: bool) -> None:
    def reconcile(obj: Widget, context: Context) -> None:
        context.apply(config("made", size=str(obj.spec.size)))
        obj.status.size = obj.spec.size

    harness = cluster(reconcile, owns=[CONFIG])
    harness.fail(error, times=3, verb="apply", lost=lost)
    harness.fail(error, verb="status", kind=Widget, lost=lost)
    harness.create(widget(size=2))
    harness.settle()
    for _ in range(10):
        harness.advance(1)
    made, found = harness.get(CONFIG, "made"), harness.get(Widget, "a")
    assert made is not None
    assert found is not None
    assert (made["data"], found.status.size) == ({"size": "2"}, 2)


def test_an_object_that_does_not_fit_its_class_is_reported() -> None:
    class Narrow(Kind, api_version="v1", kind="ConfigMap"):
        data: dict[str, int]

    app = App("narrow")

    @app.controller(Narrow)
    def narrow(obj: Narrow, context: Context) -> None:
        raise AssertionError("it cannot be read")

    harness = Harness(app, strict=False)
    harness.create(config("made", text="x"))
    harness.settle()
    assert "Expected `int`, got `str` - at `$.data[...]`" in harness.events(CONFIG, "made")[0].message


def test_a_reconcile_emits_events() -> None:
    def reconcile(obj: Widget, context: Context) -> None:
        context.event("Looked", f"at size {obj.spec.size}")

    harness = cluster(reconcile)
    harness.create(widget())
    harness.settle()
    harness.patch(Widget, "a", {"metadata": {"labels": {"a": "b"}}})
    harness.settle()
    told = harness.events(Widget, "a")
    assert [each[:3] for each in told] == [("Normal", "Looked", "at size 1")]
    assert told[0].times >= 2

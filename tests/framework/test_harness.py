"""Tests of the features of the test harness: users, warnings, nodes, daemons, changes."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

from ctrlmgr import App, Context, Kind, Metadata, Model, Refused, Result, Status, Write
from ctrlmgr.errors import BadRequest, Forbidden
from ctrlmgr.testing import Harness


class LampSpec(Model):
    minutes: int = 5


class LampStatus(Status):
    burning: bool = False
    seen: int = 0


class Lamp(Kind, api_version="example.com/v1"):
    spec: LampSpec = LampSpec()
    status: LampStatus = LampStatus()


def lamp(name: str = "hall", **spec: Any) -> Lamp:
    return Lamp(metadata=Metadata(name=name), spec=LampSpec(**spec))


def raw(**more: Any) -> dict[str, Any]:
    return {"apiVersion": "example.com/v1", "kind": "Lamp", "metadata": {"name": "hall"}, **more}


# Users, warnings and fields.


def guarded() -> App:
    app = App("lamps", kinds=[Lamp])

    @app.admission(Lamp)
    def limits(lamp: Lamp, write: Write) -> None:
        if lamp.spec.minutes > 60 and "electricians" not in write.groups:
            raise Refused(f"{write.user} may not burn lamps that long")
        if lamp.spec.minutes > 30:
            write.warn("that is long")

    return app


def test_a_write_is_made_as_the_given_user() -> None:
    cluster = Harness(guarded())
    with pytest.raises(Forbidden, match="alice may not burn lamps that long"):
        cluster.create(lamp(minutes=90), user="alice")
    cluster.create(lamp(minutes=90), user="bob", groups=["electricians"])
    with pytest.raises(Forbidden, match="alice may not"):
        cluster.patch(Lamp, "hall", {"spec": {"minutes": 91}}, user="alice", groups=["cooks"])
    cluster.delete(Lamp, "hall", user="alice")


def test_warnings_of_the_last_write_are_readable() -> None:
    cluster = Harness(guarded())
    cluster.create(lamp(minutes=45))
    assert cluster.warnings == ("that is long",)
    cluster.patch(Lamp, "hall", {"spec": {"minutes": 1}})
    assert not cluster.warnings


def test_unknown_fields_are_refused_unless_configured() -> None:
    cluster = Harness(guarded())
    with pytest.raises(BadRequest, match=r'strict decoding error: unknown field "spec.colour"'):
        cluster.create(raw(spec={"colour": "red"}))
    with pytest.raises(BadRequest, match=r'unknown field "spec.contianers"'):
        cluster.create({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"contianers": []}})
    lax = Harness(guarded(), field_validation="Warn")
    lax.create(raw(spec={"colour": "red"}))
    assert lax.warnings == ('unknown field "spec.colour"',)


def test_admission_reads_existing_objects() -> None:
    app = App("lamps", kinds=[Lamp])

    @app.admission(Lamp, validates=True, operations=("CREATE",))
    def only_two(lamp: Lamp, write: Write) -> None:
        others = write.cache.list(Lamp, write.namespace)
        if len(others) >= 2 or write.cache.get("v1/ConfigMap", "dark", write.namespace) is not None:
            raise Refused(f"there are {len(others)} lamps")

    cluster = Harness(app)
    cluster.create(lamp("a"))
    cluster.create(lamp("b"))
    with pytest.raises(Forbidden, match="there are 2 lamps"):
        cluster.create(lamp("c"))
    cluster.delete(Lamp, "a")
    cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "dark"}})
    with pytest.raises(Forbidden, match="there are 1 lamps"):
        cluster.create(lamp("c"))
    assert [each.name for each in cluster.list(Lamp)] == ["b"]


# Nodes


def test_one_call_makes_a_deployment_ready() -> None:
    cluster = Harness(App("none"), nodes=3)
    assert len(cluster.list("v1/Node")) == 3
    web = cluster.deployment("web", replicas=4)
    assert web.fields["status"]["readyReplicas"] == 4
    pods = cluster.list("v1/Pod")
    assert {each.fields["status"]["phase"] for each in pods} == {"Running"}
    assert len({each.fields["spec"]["nodeName"] for each in pods}) > 1


def test_a_deployment_that_cannot_become_ready_fails_the_test() -> None:
    with pytest.raises(AssertionError, match="pods need nodes to run: write Harness\\(app, nodes=3\\)"):
        Harness(App("none")).deployment("web")
    with pytest.raises(AssertionError, match="the condition did not become true within 5 s"):
        Harness(App("none"), nodes=1).deployment("web", image="example.com/x:nonexistent", within=5)


def test_time_advances_to_the_next_due_timer() -> None:
    app, seen = App("lamps"), list[int]()

    @app.controller(Lamp, resync=10)
    def lamp_controller(lamp: Lamp, context: Context) -> None:
        seen.append(context.now())

    cluster = Harness(app)
    start = cluster.clock.now()
    cluster.create(lamp())
    cluster.advance(35)
    assert [(each - start) // 1_000_000 for each in seen] == [
        0,
        0,
        10,
        20,
        30,
    ]  # twice, because the status that the controller writes is a change


# Changes between two reconciles.


def test_a_reconcile_sees_the_state_of_the_previous_one() -> None:
    app, changes = App("lamps"), list[tuple[int | None, int]]()

    @app.controller(Lamp)
    def lamp_controller(lamp: Lamp, context: Context) -> Result | None:
        changes.append((None if context.old is None else context.old.spec.minutes, lamp.spec.minutes))
        if lamp.spec.minutes == 13:
            raise RuntimeError("unlucky")
        return None

    cluster = Harness(app, strict=False)
    cluster.create(lamp())
    cluster.settle()
    for minutes in (13, 7):
        cluster.patch(Lamp, "hall", {"spec": {"minutes": minutes}})
        cluster.settle()
    assert [change for change in dict.fromkeys(changes) if change[0] != change[1]] == [(None, 5), (5, 13), (5, 7)]
    cluster.restart()
    cluster.settle()
    assert changes[-1] == (None, 7)


# Daemons


class DaemonApp:
    """An app with a daemon that counts its steps, and a record of these steps."""

    def __init__(self, fails: int = 0, ends_after: int = 1000, pause: Any = 5) -> None:
        self.app = App("lamps")
        self.told: list[str] = []
        self.fails = fails

        @self.app.daemon(Lamp)
        def blink(lamp: Lamp, context: Context) -> Generator[float, Lamp, None]:
            self.told.append("begins")
            try:
                for number in range(ends_after):
                    lamp.status.seen = number
                    context.condition("Blinking", True, "Step", str(lamp.spec.minutes))
                    if self.fails:
                        self.fails -= 1
                        raise RuntimeError("no current")
                    lamp = yield pause
            finally:
                self.told.append("ends")

        self.cluster = Harness(self.app, strict=not fails)


def test_a_daemon_runs_as_long_as_its_object() -> None:
    story = DaemonApp()
    story.cluster.create(lamp())
    story.cluster.advance(12)
    found = story.cluster.get(Lamp, "hall")
    assert found is not None
    assert (found.status.seen, found.status.conditions[0].message, story.told) == (2, "5", ["begins"])
    story.cluster.patch(Lamp, "hall", {"spec": {"minutes": 9}})
    story.cluster.advance(1)
    assert story.cluster.get(Lamp, "hall").status.seen == 2  # type: ignore[union-attr]  # a change does not wake it
    story.cluster.advance(2)
    found = story.cluster.get(Lamp, "hall")
    assert found is not None
    assert (found.status.seen, found.status.conditions[0].message) == (3, "9")
    story.cluster.delete(Lamp, "hall")
    story.cluster.settle()
    assert story.told == ["begins", "ends"]


def test_a_recreated_object_has_a_new_daemon() -> None:
    story = DaemonApp()
    story.cluster.create(lamp())
    story.cluster.settle()
    story.cluster.delete(Lamp, "hall")
    story.cluster.create(lamp())
    story.cluster.settle()
    assert story.told == ["begins", "ends", "begins"]


def test_a_daemon_ends_when_its_controller_does() -> None:
    story = DaemonApp()
    story.cluster.create(lamp())
    story.cluster.settle()
    story.cluster.restart()
    assert story.told == ["begins", "ends"]
    story.cluster.settle()
    assert story.told == ["begins", "ends", "begins"]


def test_a_returned_daemon_is_not_restarted() -> None:
    story = DaemonApp(ends_after=2)
    story.cluster.create(lamp())
    story.cluster.advance(60)
    story.cluster.patch(Lamp, "hall", {"spec": {"minutes": 9}})
    story.cluster.advance(60)
    assert story.told == ["begins", "ends"]


def test_a_failed_daemon_is_restarted() -> None:
    story = DaemonApp(fails=2)
    story.cluster.create(lamp())
    story.cluster.advance(1)
    assert story.told == ["begins", "ends", "begins", "ends", "begins"]
    assert [str(error) for _, _, error in story.cluster.errors] == ["no current", "no current"]


@pytest.mark.parametrize("pause", [-1, "5", None, True])
def test_a_daemon_yields_seconds(pause: Any) -> None:
    story = DaemonApp(pause=pause)
    story.cluster.create(lamp())
    with pytest.raises(AssertionError, match="not the seconds to sleep"):
        story.cluster.settle()


def test_a_daemon_must_be_a_generator() -> None:
    app = App("lamps")
    with pytest.raises(TypeError, match="daemon blink: a daemon is a generator, in which `yield 5` sleeps"):

        @app.daemon(Lamp)
        def blink(lamp: Lamp, context: Context) -> Any:
            return None

"""Checks of informers: a list and its watches are one history without gaps."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from tests.robustness.checks.evidence import Evidence, Stream
from tests.robustness.histories.history import LAST, Delivery, Item, Logged, Write
from tests.robustness.histories.truth import is_selected, path_of


def complete(evidence: Evidence) -> Iterator[str]:
    """After its list, an informer receives every event once, and the events lead to the state in the log."""
    streams = sorted((each for each in evidence.streams if each.watch.informer), key=_order)
    for name, of_one in groupby(streams, key=lambda stream: stream.watch.informer):
        for lived in _lives(list(of_one)):
            yield from _judge(evidence, name, lived)


def _order(stream: Stream) -> tuple[str, int]:
    return stream.watch.informer, stream.watch.called


def _lives(streams: list[Stream]) -> Iterator[list[Stream]]:
    """Split the streams of one informer at its lists."""
    life: list[Stream] = []
    for stream in streams:
        if stream.watch.listed is not None and life:
            yield life
            life = []
        life.append(stream)
    if life:
        yield life


def _judge(evidence: Evidence, name: str, life: list[Stream]) -> Iterator[str]:
    watch, start = life[0].watch, life[0].start
    if start is None:
        return
    seen = [event for stream in life for event in stream.events]
    reached = max([start, *(stream.reached for stream in life)])
    expected = list(evidence.truth.events(watch.resource, watch.selection, start, reached))
    for one, other in zip(seen, expected, strict=False):
        if one[:5] != other[:5]:
            yield f"informer {name}, from {start}: was told {one}, not {other}"
            return
    if len(seen) != len(expected):
        yield f"informer {name}, from {start} to {reached}: was told {len(seen)} events of {len(expected)}"
    listed = watch.listed or [Item(*each[2:4], each[1], each[4]) for each in life[0].initial]
    if _folded(listed, seen) != evidence.truth.state(watch.resource, watch.selection, reached):
        yield f"informer {name}, from {start}: what it holds at {reached} is not the state"


def _folded(listed: list[Item], events: list[Delivery]) -> list[Item]:
    held = {(each.namespace, each.name): each for each in listed}
    for event in events:
        if event.type == "DELETED":
            held.pop((event.namespace, event.name), None)
        else:
            held[event.namespace, event.name] = Item(event.namespace, event.name, event.revision, event.digest)
    return sorted(held.values(), key=path_of)


def hear_the_last(evidence: Evidence) -> Iterator[str]:
    """After the faults have ended, every informer receives the last written objects."""
    last = [
        event for write in evidence.history.writes if write.id.startswith(LAST) for event in _events(evidence, write)
    ]
    reached: dict[str, Stream] = {}
    for stream in evidence.streams:
        reached[stream.watch.informer] = stream
    for name, stream in reached.items():
        watch = stream.watch
        for event in last:
            concerns = event.resource == watch.resource and is_selected(watch.selection, event)
            if name and concerns and stream.reached < event.revision:
                yield f"informer {name} got to {stream.reached}, not to {event.revision}"


def _events(evidence: Evidence, write: Write) -> list[Logged]:
    return evidence.truth.of_write.get(write.id, [])

"""Measures the cost of priority and fairness, and of tracing, for a GET and for a create.

Two servers run at the same time: one with the feature, and one without priority and fairness and without tracing. The
servers answer the same requests in short turns, and the processor time for each request is compared. Two processes of
one program differ by a few percent for as long as they run, so the mean of several pairs of servers is compared.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import fmean
from typing import Final, NamedTuple

from bench.authorization import READ
from bench.report import Claim
from bench.support.served import Served, serving
from bench.support.spending import RequestSeries, in_turns
from tests.tracing.collector import Collector

PAIRS: Final = 6
TURNS: Final = 30
WITHOUT: Final = ("--enable-priority-and-fairness=false", "--controllers", "namespace-controller")
"""The options of the server that is compared. Controllers would also write, with varying load."""
CONFIG_MAPS: Final = "/api/v1/namespaces/default/configmaps"


class Feature(NamedTuple):
    """A feature whose cost is measured."""

    name: str
    options: Sequence[str]
    goal: float
    """The maximum ratio of the processor times of a request, with and without the feature."""


FAIRNESS: Final = Feature("priority and fairness", WITHOUT[1:], 1.05)


def claims() -> Iterator[Claim]:
    """Yield the costs of each feature for a GET and for a create."""
    with tempfile.TemporaryDirectory() as name, Collector() as collector:
        file = Path(name) / "tracing.yaml"
        file.write_text(
            "apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\n"
            f"endpoint: {collector.endpoint}\nsamplingRatePerMillion: 1000000\n"
        )
        tracing = (*WITHOUT[1:], "--tracing-config-file", str(file))
        for feature in (FAIRNESS, Feature("priority and fairness, and a trace of each request", tracing, 1.10)):
            yield from _compared(feature)


def _compared(feature: Feature) -> Iterator[Claim]:
    pairs = [_pair(feature, number) for number in range(PAIRS)]
    for index, request in enumerate(("GET", "create of a ConfigMap")):
        ours, theirs = (fmean(pair[index][side] for pair in pairs) for side in (0, 1))
        yield Claim(f"{request} with {feature.name}, compared with neither", ours, theirs, feature.goal, "us", True)


def _pair(feature: Feature, number: int) -> list[tuple[float, float]]:
    """Return the microseconds of processor time for a GET and for a create, each with and without a feature.

    The `number` of the pair decides which server starts first.
    """
    with ExitStack() as stack:
        folders = [Path(stack.enter_context(tempfile.TemporaryDirectory())) for _ in range(2)]
        options = [feature.options, WITHOUT]
        order = (0, 1) if number % 2 else (1, 0)
        started = {each: stack.enter_context(serving(folders[each], *options[each])) for each in order}
        ours, theirs = started[0], started[1]
        return [in_turns(one, other, TURNS) for one, other in zip(_series(ours), _series(theirs), strict=True)]


def _series(served: Served) -> tuple[RequestSeries, RequestSeries]:
    served.open("POST", CONFIG_MAPS, json.dumps({"metadata": {"name": "bench"}, "data": {"a": "b"}}).encode())
    created = json.dumps({"metadata": {"generateName": "bench-"}, "data": {"a": "b"}})
    return RequestSeries(served, served.request("GET", READ)), RequestSeries(
        served, served.request("POST", CONFIG_MAPS, created), 201
    )

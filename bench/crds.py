"""Measures custom kinds: the time until a kind is served, the cost of its objects, and the cost of five hundred kinds.

Creates of custom objects and of ConfigMaps of the same size alternate. One client measures delays by reading a
ConfigMap repeatedly. At the same time, another client creates CustomResourceDefinitions one by one, and the first
object of each kind; the last CustomResourceDefinition has a large schema. The server has five hundred other
CustomResourceDefinitions already. The benchmark subtracts the delay that the reading client measures before the first
CustomResourceDefinition is created. The result is the median of several rounds, because other programs on the machine
also cause delays.
"""

from __future__ import annotations

import http.client
import json
import ssl
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from bench.api import load
from bench.report import Claim, report, run
from bench.support.served import Served, serving

ROUNDS = 3
SECONDS = 2.0
WRITERS = 8
MANY = 500
AFTER = 1.0
"""Seconds for which a new CustomResourceDefinition may delay other requests by garbage collection and new documents."""
ARRIVALS = 10
"""Number of CustomResourceDefinitions that are created while a client reads."""
DEPTH, WIDTH = 2, 4
"""The depth of a CustomResourceDefinition's schema of about 9 KB, and the number of fields of each object in it."""
DEEP = 5
"""The depth of a large CustomResourceDefinition's schema, which is about 600 KB."""

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
MAPS = "/api/v1/namespaces/default/configmaps"


def schema(depth: int = DEPTH) -> dict[str, Any]:
    """Return a schema of nested objects with this depth."""
    text = {"type": "string", "description": "What it says is up to its user, who may leave it out."}
    fields: dict[str, Any] = {f"field{index}": text for index in range(WIDTH)}
    if depth:
        fields |= {f"part{index}": schema(depth - 1) for index in range(WIDTH)}
    return {"type": "object", "properties": fields}


def definition(name: str, depth: int = DEPTH) -> bytes:
    """Return a CustomResourceDefinition of a kind `name`, with a schema of this depth."""
    properties = {"spec": schema(depth), "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
        "subresources": {"status": {}},
    }
    names = {"plural": name, "kind": name.capitalize()}
    spec = {"group": "bench.example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    head = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    return json.dumps({**head, "metadata": {"name": f"{name}.bench.example.com"}, "spec": spec}).encode()


def instances(name: str) -> str:
    """Return the URL path of a custom kind's objects."""
    return f"/apis/bench.example.com/v1/namespaces/default/{name}"


def instance(name: str, called: str) -> str:
    """Return an object of a custom kind."""
    head = {"apiVersion": "bench.example.com/v1", "kind": name.capitalize(), "metadata": {"name": called}}
    return json.dumps({**head, "spec": {f"field{index}": "some text" for index in range(WIDTH)}})


def until_accepted(served: Served, name: str, depth: int = DEPTH) -> float:
    """Create a CustomResourceDefinition; return the seconds until the server accepts the first object of the kind."""
    began = time.perf_counter()
    served.open("POST", DEFINITIONS, definition(name, depth))
    while True:
        try:
            served.open("POST", instances(name), instance(name, "first").encode())
        except OSError:  # HTTPError 404: the kind is not served yet
            continue
        return time.perf_counter() - began


def creates(served: Served) -> float:
    """Return the creates of custom objects per second, and of ConfigMaps per second; both are medians of rounds."""
    data = {f"field{index}": "some text" for index in range(WIDTH)}
    config_map = json.dumps({"metadata": {"name": "m-{n}"}, "data": data})
    ratios = []
    for round_ in range(ROUNDS):
        rates = []
        for path, body in ((MAPS, config_map), (instances("things"), instance("things", "t-{n}"))):
            request = served.request("POST", path, body.replace("-{n}", f"-{round_}-{{n}}"))
            rates.append(load(served, WRITERS, [request], SECONDS, 201).rate)
        ratios.append(rates[1] / rates[0])
    return median(ratios)


@contextmanager
def reading(served: Served) -> Iterator[list[float]]:
    """Read a ConfigMap repeatedly until the block ends; yield the list of the durations of all reads in seconds."""
    took: list[float] = []
    ended = threading.Event()
    context = ssl.create_default_context(cafile=served.authority)
    connection = http.client.HTTPSConnection(served.host, served.port, context=context, timeout=60)

    def read() -> None:
        while not ended.is_set():
            began = time.perf_counter()
            connection.request("GET", f"{MAPS}/read", headers={"Authorization": f"Bearer {served.token}"})
            connection.getresponse().read()
            took.append(time.perf_counter() - began)

    thread = threading.Thread(target=read)
    thread.start()
    try:
        yield took
    finally:
        ended.set()
        thread.join()
        connection.close()


def delay(served: Served) -> float:
    """Return the maximum additional seconds that a read takes while CustomResourceDefinitions are created."""
    served.open("POST", MAPS, json.dumps({"metadata": {"name": "read"}}).encode())
    with reading(served) as alone:
        time.sleep(SECONDS)
    return median(longest_of_round(served, round_) for round_ in range(ROUNDS)) - max(alone)


def longest_of_round(served: Served, round_: int) -> float:
    """Return the longest read while the CustomResourceDefinitions of this round are created, and shortly afterwards."""
    with reading(served) as beside:
        for number in range(ARRIVALS):
            until_accepted(served, f"arrivals{round_}x{number}")
        until_accepted(served, f"large{round_}", DEEP)
        time.sleep(AFTER)
    return max(beside)


class Many(NamedTuple):
    """The cost of many CustomResourceDefinitions."""

    empty: float
    """Seconds that a server without CustomResourceDefinitions needs to start."""
    full: float
    """Seconds that a server with many CustomResourceDefinitions needs to start."""
    memory: float
    """Bytes of server memory for each CustomResourceDefinition."""
    delay: float
    """Additional seconds of a read while another CustomResourceDefinition is created."""


def many(folder: Path) -> Many:
    """Start one server without CustomResourceDefinitions, and one with many; measure both."""
    starts, memory = [], []
    for name in ("empty", "full"):  # two data directories for one database
        (folder / name).mkdir()
        began = time.perf_counter()
        with serving(folder / name, "--database", f"sqlite:///{folder / 'bench.db'}") as served:
            starts.append(time.perf_counter() - began)
            time.sleep(SECONDS)
            memory.append(served.resident())
            if len(starts) == 1:
                for number in range(MANY):
                    served.open("POST", DEFINITIONS, definition(f"many{number}"))
            else:
                longest = delay(served)
    return Many(starts[0], starts[1], (memory[1] - memory[0]) / MANY, longest)


def main(arguments: Sequence[str]) -> int:
    """Run the benchmark."""
    with tempfile.TemporaryDirectory() as name, serving(Path(name)) as served:
        accepted = median(until_accepted(served, name) for name in ("things", "others", "more"))
        ratio = creates(served)
    with tempfile.TemporaryDirectory() as name:
        found = many(Path(name))
    sizes = f"a definition has {len(definition('things')):,} bytes, a large one {len(definition('large', DEEP)):,}"
    print(f"{sizes}; starting takes {found.empty:.2f} s, with {MANY} {found.full:.2f} s")
    starts = found.full * 1e3, found.empty * 1e3
    claims = [
        Claim(
            "time from creating a CustomResourceDefinition to its first object",
            accepted * 1e3,
            1000.0,
            1.0,
            "ms",
            at_most=True,
        ),
        Claim("creates of custom objects, in percent of the creates of ConfigMaps", ratio * 100, 100.0, 0.6, "%"),
        Claim(
            f"start of a server with {MANY} CustomResourceDefinitions, compared with none",
            *starts,
            2.0,
            "ms",
            at_most=True,
        ),
        Claim("resident memory of a CustomResourceDefinition", found.memory / 1e3, 100.0, 1.0, "kB", at_most=True),
        Claim(
            "longest delay of a read by a new CustomResourceDefinition",
            found.delay * 1e3,
            20.0,
            1.0,
            "ms",
            at_most=True,
        ),
    ]
    return report(claims, arguments)


if __name__ == "__main__":
    run(main, __doc__)

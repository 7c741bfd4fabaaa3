"""Measures the rate of reads while controllers have a backlog.

GETs are sent right after very many Services were created, whose Endpoints and EndpointSlices do not exist yet. These
GETs are compared with the same GETs after all Endpoints and EndpointSlices exist.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import msgspec

from bench.api import NAMESPACE, READERS, SERVICE, WRITERS, load
from bench.report import Claim, report, run
from bench.support.served import Served, serving

ROUNDS = 3
CREATING, READING = 2.0, 1.0
"""Duration of each measurement, in seconds."""
SERVICES = f"/api/v1/namespaces/{NAMESPACE}/services"
SLICES = f"/apis/discovery.k8s.io/v1/namespaces/{NAMESPACE}/endpointslices?limit=1"


def count(served: Served, path: str) -> int:
    """Return the number of objects in a collection."""
    listed = msgspec.json.decode(served.open("GET", path))
    return len(listed["items"]) + int(listed["metadata"].get("remainingItemCount", 0))


def settle(served: Served) -> float:
    """Return the seconds until each Service had its EndpointSlice."""
    began = time.perf_counter()
    while count(served, SLICES) < count(served, f"{SERVICES}?limit=1"):
        time.sleep(0.05)
    return time.perf_counter() - began


def main(arguments: Sequence[str]) -> int:
    """Run the benchmark."""
    busy, calm = [], []
    with tempfile.TemporaryDirectory() as name, serving(Path(name)) as served:
        served.open("POST", "/api/v1/namespaces", json.dumps({"metadata": {"name": NAMESPACE}}).encode())
        create = served.request("POST", SERVICES, json.dumps(SERVICE))
        get = served.request("GET", f"/api/v1/namespaces/{NAMESPACE}")
        for _ in range(ROUNDS):
            created = load(served, WRITERS, [create], CREATING, expect=201).rate * CREATING
            missing = count(served, f"{SERVICES}?limit=1") - count(served, SLICES)
            busy.append(load(served, READERS, [get], READING).rate)
            print(f"created {created:.0f}, of {missing} no EndpointSlice; all had one {settle(served):.1f} s later")
            calm.append(load(served, READERS, [get], READING).rate)
    return report(
        [
            Claim(
                "GETs during a backlog of reconciles, compared with none",
                median(busy),
                median(calm),
                0.60,
                "requests/s",
            )
        ],
        arguments,
    )


if __name__ == "__main__":
    run(main, __doc__)

"""Tests that many threads can use a codec at the same time.

A failure would crash the process, so the test runs in a separate process.
"""

from __future__ import annotations

import subprocess
import sys

_DECODERS = """
import json, sys, threading
from ctrlmgr.schema import published_schema
from ctrlmgr.schema.definitions import Definitions

sys.setswitchinterval(1e-6)
template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "a", "image": "b"}]}}
body = json.dumps({"metadata": {"name": "a"}, "spec": {"selector": {}, "template": template}}).encode()

for _ in range(10):
    definitions, together, read = Definitions(published_schema.definitions()), threading.Barrier(4), []
    def decode(kind):
        codec = definitions.codec(kind, "apps/v1", f"io.k8s.api.apps.v1.{kind}")
        together.wait()
        read.append(codec.decode(body, "application/json").fields)
    kinds = ("Deployment", "ReplicaSet", "Deployment", "DaemonSet")
    readers = [threading.Thread(target=decode, args=(kind,)) for kind in kinds]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    assert [each["spec"]["template"]["spec"]["containers"][0]["name"] for each in read] == ["a"] * 4, read
"""


def test_several_threads_can_decode_a_kind_for_the_first_time() -> None:
    done = subprocess.run([sys.executable, "-c", _DECODERS], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done

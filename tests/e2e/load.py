"""A writer that continuously creates, changes, releases and deletes a few objects of one kind, and records its writes.

The writer writes as client-go's typed clients do, in protobuf and with the resourceVersion that it has read. After the
server was unavailable, the writer continues, and reads the objects again whose state it does not know.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from typing import NamedTuple

from tests.e2e.clients.client_go import ClientGo, ConnectionBroken, Response, Unstructured
from tests.e2e.serving import Server

BACKOFF = 0.1
"""Seconds between two attempts to connect."""

NAMES = 6
LAST = "last"
LABELS = {"app": "web"}
FINALIZER = "example.com/hold"


class AcknowledgedWrite(NamedTuple):
    """An acknowledged write."""

    revision: int
    name: str


class Writer:
    """A writer for objects of one kind in one namespace; when it is stopped, it writes an object
    with the name `last`.
    """

    def __init__(
        self,
        server: Server,
        path: str,
        make: Callable[[str], Unstructured],
        seed: int,
        status: Callable[[str], Unstructured] | None = None,
    ) -> None:
        """Write the objects that `make` returns below `path`; if `status` is set, also write the status of each object
        directly after its creation.
        """
        self.acknowledged: list[AcknowledgedWrite] = []
        self.deleted: list[str] = []
        """The uids of deleted objects."""
        self._server, self._path, self._make, self._status = server, path, make, status
        self._random = random.Random(seed)
        self._objects: dict[str, Unstructured | None] = dict.fromkeys(f"object-{number}" for number in range(NAMES))
        self._stop = threading.Event()
        self._pause = threading.Event()

    def stop(self) -> None:
        """Let `run` end."""
        self._stop.set()

    def run(self) -> None:
        """Write until stopped; raise AssertionError if the server refuses a write that it must accept."""
        with ClientGo(self._server) as client:
            while not self._stop.is_set():
                self._write(client, self._random.choice(list(self._objects)))
            self._objects[LAST] = None
            while self._objects[LAST] is None:
                self._write(client, LAST)

    def _write(self, client: ClientGo, name: str) -> None:
        obj = self._objects[name]
        try:
            self._create(client, name) if obj is None else self._change(client, name, obj)
        except ConnectionBroken:
            self._read_again(client, name)

    def _read_again(self, client: ClientGo, name: str) -> None:
        """Find out whether a write succeeded whose response was lost."""
        while True:
            try:
                code, body = client.get(f"{self._path}/{name}")
            except ConnectionBroken:
                self._pause.wait(BACKOFF)
            else:
                assert code in (200, 404), body
                self._objects[name] = body if code == 200 else None
                return

    def _create(self, client: ClientGo, name: str) -> None:
        obj = self._make(name)
        if name == LAST or self._random.random() < 0.5:
            obj["metadata"]["labels"] = LABELS
        if name != LAST and self._random.random() < 0.3:
            obj["metadata"]["finalizers"] = [FINALIZER]
        self._acknowledge(name, client.write("POST", self._path, obj), 201)
        if self._status is not None:
            self._put(client, f"{name}/status", {**(self._objects[name] or {}), "status": self._status(name)})

    def _change(self, client: ClientGo, name: str, obj: Unstructured) -> None:
        if "deletionTimestamp" in obj["metadata"]:
            self._release(client, name, obj)
        elif self._random.random() < 0.25:
            self._delete(client, name, obj)
        else:
            labels = {} if "labels" in obj["metadata"] and self._random.random() < 0.3 else LABELS
            stamp = {"example.com/stamp": str(self._random.getrandbits(32))}
            self._put(client, name, {**obj, "metadata": {**obj["metadata"], "labels": labels, "annotations": stamp}})

    def _put(self, client: ClientGo, place: str, obj: Unstructured) -> None:
        self._acknowledge(obj["metadata"]["name"], client.write("PUT", f"{self._path}/{place}", obj), 200)

    def _release(self, client: ClientGo, name: str, obj: Unstructured) -> None:
        """Remove the finalizer of a terminating object, so that the server removes the object."""
        metadata = {key: value for key, value in obj["metadata"].items() if key != "finalizers"}
        code, body = client.write("PUT", f"{self._path}/{name}", {**obj, "metadata": metadata})
        assert code == 200, body
        self._gone(name, obj)

    def _delete(self, client: ClientGo, name: str, obj: Unstructured) -> None:
        metadata = obj["metadata"]
        options = {
            "apiVersion": obj["apiVersion"],
            "kind": "DeleteOptions",
            "preconditions": {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]},
            "propagationPolicy": "Background",
            "gracePeriodSeconds": 0,
        }
        answer = client.write("DELETE", f"{self._path}/{name}", options)
        assert answer.code == 200, answer.body
        if "finalizers" in metadata:
            self._read_again(client, name)
        else:
            self._gone(name, obj)

    def _acknowledge(self, name: str, answer: Response, code: int) -> None:
        assert answer.code == code, answer.body
        self._objects[name] = answer.body
        self.acknowledged.append(AcknowledgedWrite(int(answer.body["metadata"]["resourceVersion"]), name))

    def _gone(self, name: str, obj: Unstructured) -> None:
        self._objects[name] = None
        self.deleted.append(obj["metadata"]["uid"])

"""A small operator for tests, with nothing but HTTP: each Widget gets ConfigMaps, and a status.

The variable FAULT chooses a fault:

- `gives-up`: a ConfigMap that exists already is an error after which the Widget is not handled again.
- `forgets`: a Widget whose status was written is never looked at again, and the status is written first.
- `generates`: the ConfigMaps have generated names, which the operator remembers only in memory.
"""

from __future__ import annotations

import json
import os
import sys
import time
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import yaml

FAULT = os.environ.get("FAULT", "")
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


def server() -> str:
    with open(os.environ["KUBECONFIG"], encoding="utf-8") as file:
        return str(yaml.safe_load(file)["clusters"][0]["cluster"]["server"])


SERVER = server()


def call(method: str, path: str, fields: Any = None) -> Any:
    body = None if fields is None else json.dumps(fields).encode()
    with urlopen(
        Request(SERVER + path, body, {"Content-Type": "application/json"}, method=method), timeout=30
    ) as answer:
        return json.load(answer)


class Operator:
    def __init__(self) -> None:
        self.handled: set[str] = set()
        self.names: dict[str, list[str]] = {}

    def run(self) -> None:
        while True:
            try:
                self.list_and_watch()
            except (OSError, ValueError, HTTPException) as error:
                sys.stderr.write(f"again, after {error!r}\n")
                time.sleep(0.3)

    def list_and_watch(self) -> None:
        found = call("GET", f"{WIDGETS}?resourceVersion=0")
        for widget in found["items"]:
            self.reconcile(widget)
        revision = found["metadata"]["resourceVersion"]
        with urlopen(f"{SERVER}{WIDGETS}?watch=1&resourceVersion={revision}", timeout=300) as events:
            for line in events:
                event = json.loads(line)
                if event["type"] == "ERROR":
                    return
                if event["type"] != "DELETED":
                    self.reconcile(event["object"])

    def reconcile(self, widget: Any) -> None:
        uid, size = widget["metadata"]["uid"], widget["spec"]["size"]
        status = widget.get("status", {})
        if uid in self.handled or (FAULT == "forgets" and status.get("size") == size):
            return
        if FAULT == "forgets":
            self.write_status(widget, size)
        for number in range(size):
            self.ensure(widget, number)
        if FAULT != "forgets" and status.get("size") != size:
            self.write_status(widget, size)

    def ensure(self, widget: Any, number: int) -> None:
        metadata = widget["metadata"]
        owner = {"apiVersion": "example.com/v1", "kind": "Widget", "name": metadata["name"], "uid": metadata["uid"]}
        child = {"ownerReferences": [owner], "name": f"{metadata['name']}-{number}"}
        if FAULT == "generates":
            names = self.names.setdefault(metadata["uid"], [])
            if number < len(names):
                return
            child["generateName"] = f"{child.pop('name')}-"
        try:
            created = call("POST", CONFIG_MAPS, {"metadata": child, "data": {"number": str(number)}})
        except HTTPError as error:
            if error.code != 409:
                raise
            if FAULT == "gives-up":
                self.handled.add(metadata["uid"])
            return
        if FAULT == "generates":
            self.names[metadata["uid"]].append(created["metadata"]["name"])

    def write_status(self, widget: Any, size: int) -> None:
        name = widget["metadata"]["name"]
        call("PUT", f"{WIDGETS}/{name}/status", {**widget, "status": {"size": size}})


if __name__ == "__main__":
    sys.stderr.write("started\n")
    Operator().run()

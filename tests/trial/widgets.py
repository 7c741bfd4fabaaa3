"""The definition of Widgets, a scenario, and the options of runs, for tests of the trial."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from ctrlmgr.trial.scenario import Apply, Patch, Scenario, Target, Wait

SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {"type": "object", "properties": {"size": {"type": "integer"}}},
        "status": {"type": "object", "properties": {"size": {"type": "integer"}}},
    },
}
DEFINITION: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "names": {"kind": "Widget", "plural": "widgets"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": SCHEMA},
            }
        ],
    },
}
TARGET = Target("example.com/v1", "Widget", "default", "a")


def widget(size: int) -> dict[str, Any]:
    metadata = {"name": "a", "namespace": "default"}
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": metadata, "spec": {"size": size}}


SCENARIO = Scenario((Apply((widget(1),)), Wait(), Patch(TARGET, {"spec": {"size": 2}})))


def command(fault: str = "") -> str:
    return f"FAULT={fault} exec {sys.executable} {Path(__file__).with_name('widget_operator.py')}"

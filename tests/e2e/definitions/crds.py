"""CustomResourceDefinitions as in Kubernetes' conformance tests: each has an unusual name and its own API group."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from tests.e2e.serving import Server
from tests.e2e.widgets import DEFINITIONS, defined

Schema = Mapping[str, Any]

ANYTHING: Schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
"""An OpenAPI schema that accepts any object."""

JSON_PATCH = "application/json-patch+json"

_numbers = itertools.count(1)


class Crd(NamedTuple):
    """A served definition."""

    group: str
    plural: str
    kind: str

    @property
    def name(self) -> str:
        return f"{self.plural}.{self.group}"

    @property
    def path(self) -> str:
        return f"{DEFINITIONS}/{self.name}"

    def objects(self, version: str = "v1", namespace: str = "") -> str:
        """Return the URL path of the custom objects."""
        where = f"/namespaces/{namespace}" if namespace else ""
        return f"/apis/{self.group}/{version}{where}/{self.plural}"

    def object(self, name: str, version: str = "v1", **fields: Any) -> dict[str, Any]:
        """Return a custom object in the form in which a client writes it."""
        return {"apiVersion": f"{self.group}/{version}", "kind": self.kind, "metadata": {"name": name}, **fields}


def version(name: str = "v1", schema: Schema = ANYTHING, *, storage: bool = True) -> dict[str, Any]:
    """Return one served version of a CustomResourceDefinition."""
    return {"name": name, "served": True, "storage": storage, "schema": {"openAPIV3Schema": schema}}


@contextmanager
def served(
    server: Server,
    *versions: Mapping[str, Any],
    scope: str = "Cluster",
    group: str = "",
    labels: Mapping[str, str] | None = None,
) -> Iterator[Crd]:
    """Create a CustomResourceDefinition while the block runs; by default, it has one version that
    accepts any object.
    """
    number = next(_numbers)
    crd = Crd(group or f"group{number}.example.com", f"oddities{number}", f"Oddity{number}")
    with defined(server, fields(crd, versions or [version()], scope, labels)):
        yield crd


def fields(
    crd: Crd, versions: Sequence[Mapping[str, Any]], scope: str, labels: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return the manifest of the CustomResourceDefinition."""
    names = {"plural": crd.plural, "singular": crd.kind.lower(), "kind": crd.kind, "listKind": f"{crd.kind}List"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": crd.name, "labels": {**(labels or {})}},
        "spec": {"group": crd.group, "scope": scope, "names": names, "versions": [*versions]},
    }

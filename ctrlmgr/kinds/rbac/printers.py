"""The `kubectl get` columns of rbac.authorization.k8s.io (Kubernetes `pkg/printers/internalversion/printers.go`)."""

from __future__ import annotations

from typing import Any

from ctrlmgr.api.unstructured import at
from ctrlmgr.engine.tables.ages import Ages
from ctrlmgr.engine.tables.table_printer import Fields, age, printer


def _binding(fields: Fields, ages: Ages) -> list[Any]:
    names: dict[str, list[str]] = {"User": [], "Group": [], "ServiceAccount": []}
    for subject in fields.get("subjects") or ():
        name = subject.get("name", "")
        if subject.get("kind") == "ServiceAccount":
            name = f"{subject.get('namespace', '')}/{name}"
        names.get(subject.get("kind", ""), []).append(name)
    role = f"{at(fields, 'roleRef', 'kind')}/{at(fields, 'roleRef', 'name')}"
    return [role, age(fields, ages), *(", ".join(each) for each in names.values())]


_BINDING = "Role|Age|+Users|+Groups|+ServiceAccounts"


BINDING = printer(_BINDING, _binding)

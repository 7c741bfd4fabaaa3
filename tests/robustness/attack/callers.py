"""The attackers: five types of callers, each with a token and with rights."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

CALLERS = ("anonymous", "nobody", "reader", "editor", "node", "admin", "admin", "admin")
"""The types of callers that send the inputs.

Administrators have the most rights, so most inputs are sent by an administrator.
"""

RIGHTLESS = ("anonymous", "nobody")

_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_GROUPS = {"node": "system:nodes", "admin": "system:masters"}
_USERS = {"node": "system:node:one"}


def token_of(caller: str) -> str:
    """Return the token of a caller; the token of an anonymous caller is empty."""
    return "" if caller == "anonymous" else f"{caller}-token"


def write_tokens(file: Path) -> None:
    """Write the file with the callers' tokens; only the owner of the file can read it."""
    lines = [
        f'{token_of(each)},{_USERS.get(each, each)},{each}-uid,"{_GROUPS.get(each, "")}"\n'
        for each in dict.fromkeys(CALLERS)
        if each != "anonymous"
    ]
    file.write_text("".join(lines))
    file.chmod(0o600)


def grant(create: Callable[[str, Any], object]) -> None:
    """Give the callers `reader` and `editor` their rights; `create` creates an object at a path."""
    about = {"apiGroup": "rbac.authorization.k8s.io"}
    for name, role, kind, place in (
        ("reader", "view", "clusterrolebindings", ""),
        ("editor", "admin", "rolebindings", "/namespaces/attack"),
        ("things", "attacked", "rolebindings", "/namespaces/attack"),
    ):
        user = "editor" if name == "things" else name
        binding = {
            "metadata": {"name": name},
            "roleRef": {**about, "kind": "ClusterRole", "name": role},
            "subjects": [{**about, "kind": "User", "name": user}],
        }
        create(f"{_RBAC}{place}/{kind}", binding)
    rule = {"apiGroups": ["attacked.example.com"], "resources": ["*"], "verbs": ["*"]}
    create(f"{_RBAC}/clusterroles", {"metadata": {"name": "attacked"}, "rules": [rule]})

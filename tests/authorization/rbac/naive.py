"""A naive implementation of RBAC, which evaluates every binding and every rule for each request, and a generator of
random clusters.

The naive implementation shares no code with the index and its compiled rules. Tests compare the decisions of the naive
implementation with the decisions of the index.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

from ctrlmgr.api.object import Object
from ctrlmgr.authentication.user import User
from ctrlmgr.authorization.attributes import Attributes

VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
GROUPS = ("", "apps", "batch")
RESOURCES = ("pods", "services", "deployments", "jobs")
SUBRESOURCES = ("", "status", "log", "scale")
NAMES = ("", "a", "b", "c")
NAMESPACES = ("", "red", "green")
USERS = ("ann", "bob", "system:serviceaccount:red:robot", "system:serviceaccount:green:robot")
TEAMS = ("dev", "ops", "system:authenticated")
PATHS = ("/metrics", "/healthz", "/logs/a", "/logs/a/b", "/version")
URLS = ("/metrics", "/logs/*", "*", "/healthz", "/lo*")


@dataclass
class RbacObjects:
    """Roles and bindings, stored by kind, namespace and name."""

    objects: dict[tuple[str, str, str], dict[str, Any]] = field(default_factory=dict)

    def allows(self, user: User, asked: Attributes) -> bool:
        """Return whether the request is allowed by a rule of any role that a binding grants to the user."""
        return any(_allows(rule, asked) for rule in self._rules(user, asked.namespace))

    def _rules(self, user: User, namespace: str) -> Iterable[Mapping[str, Any]]:
        for (kind, place, _), binding in self.objects.items():
            here = kind == "ClusterRoleBinding" or (kind == "RoleBinding" and namespace and place == namespace)
            if here and any(_means(subject, user, place) for subject in binding["subjects"]):
                reference = binding["roleRef"]
                where = place if reference["kind"] == "Role" else ""
                yield from self.objects.get((reference["kind"], where, reference["name"]), {}).get("rules", ())


def _means(subject: Mapping[str, str], user: User, place: str) -> bool:
    if subject["kind"] == "User":
        return subject["name"] == user.name
    if subject["kind"] == "Group":
        return subject["name"] in user.groups
    return user.name == f"system:serviceaccount:{subject.get('namespace') or place}:{subject['name']}"


def _allows(rule: Mapping[str, Any], asked: Attributes) -> bool:
    def has(what: str, *values: str) -> bool:
        return "*" in rule.get(what, ()) or any(value in rule.get(what, ()) for value in values)

    if not has("verbs", asked.verb):
        return False
    if not asked.is_resource:
        urls = rule.get("nonResourceURLs", ())
        return any(url == asked.path or (url[-1] == "*" and asked.path.startswith(url[:-1])) for url in urls)
    resource = asked.resource
    wanted = (f"{resource}/{asked.subresource}", f"*/{asked.subresource}") if asked.subresource else (resource,)
    names = rule.get("resourceNames", ())
    return has("apiGroups", asked.group) and has("resources", *wanted) and (not names or asked.name in names)


def some_question(random: Random) -> tuple[User, Attributes]:
    """Return a random requester and request."""
    user = User(random.choice(USERS), "", tuple(random.sample(TEAMS, random.randint(0, 2))))
    if random.random() < 0.15:
        return user, Attributes(random.choice(("get", "post")), random.choice(PATHS), is_resource=False)
    return user, Attributes(
        random.choice(VERBS),
        "",
        random.choice(GROUPS),
        "v1",
        random.choice(RESOURCES),
        random.choice(SUBRESOURCES),
        random.choice(NAMESPACES),
        random.choice(NAMES),
    )


def some_object(random: Random) -> dict[str, Any]:
    """Return a random role or binding with one of a few names."""
    kind = random.choice(("Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"))
    namespace = random.choice(NAMESPACES[1:]) if kind in ("Role", "RoleBinding") else ""
    metadata = {"name": f"n{random.randint(0, 9)}", **({"namespace": namespace} if namespace else {})}
    fields = {"kind": kind, "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": metadata}
    if not kind.endswith("Binding"):
        return {**fields, "rules": [_some_rule(random, bool(namespace)) for _ in range(random.randint(0, 3))]}
    roles = ("Role", "ClusterRole") if namespace else ("ClusterRole",)
    role = {"kind": random.choice(roles), "name": f"n{random.randint(0, 9)}", "apiGroup": "rbac.authorization.k8s.io"}
    return {**fields, "roleRef": role, "subjects": [_some_subject(random) for _ in range(random.randint(0, 2))]}


def _some_subject(random: Random) -> dict[str, str]:
    kind = random.choice(("User", "Group", "ServiceAccount"))
    if kind == "ServiceAccount":
        return {"kind": kind, "name": "robot", "namespace": random.choice(NAMESPACES[1:])}
    return {"kind": kind, "name": random.choice(USERS if kind == "User" else TEAMS)}


def _some_rule(random: Random, namespaced: bool) -> dict[str, list[str]]:
    if not namespaced and random.random() < 0.2:
        return {"verbs": _some(random, ("get", "post", "*")), "nonResourceURLs": _some(random, URLS)}
    parts = [f"{resource}/{part}" for resource in RESOURCES for part in SUBRESOURCES[1:]]
    rule = {
        "verbs": _some(random, (*VERBS, "*")),
        "apiGroups": _some(random, (*GROUPS, "*")),
        "resources": _some(random, (*RESOURCES, *parts, "*/status", "*/scale", "*")),
    }
    return {**rule, "resourceNames": _some(random, NAMES[1:])} if random.random() < 0.3 else rule


def _some(random: Random, values: tuple[str, ...]) -> list[str]:
    return random.sample(values, random.randint(1, 3))


def put(world: RbacObjects, fields: dict[str, Any]) -> Object:
    """Store an object, which replaces an object of the same name, and return the stored object."""
    metadata = fields["metadata"]
    world.objects[fields["kind"], metadata.get("namespace", ""), metadata["name"]] = fields
    return Object.from_dict(fields)

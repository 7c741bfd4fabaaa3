"""Measures the time of an authorization decision among 1,000 bindings, and the cost of authorization for a GET.

Decisions that are not cached are measured with many bindings and with few bindings. For a GET, the processor time of
the server's process is measured; the user has one of many bindings.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

from bench.report import Claim, report, run
from bench.support.served import Served, serving
from bench.support.spending import RequestSeries, in_turns
from ctrlmgr.api.object import Object
from ctrlmgr.authentication.user import AUTHENTICATED, User
from ctrlmgr.authorization.attributes import Attributes
from ctrlmgr.authorization.bootstrap.default_bindings import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES
from ctrlmgr.authorization.rbac.rbac_authorizer import RbacAuthorizer
from ctrlmgr.authorization.rbac.rule_resolver import RbacIndex

BINDINGS = 1000
FEW = 10
DECISIONS = 2000
ROUNDS = 9
READ = "/api/v1/namespaces/default/configmaps/bench"
_LIMIT = 15.0
"""Maximum duration of an authorization decision, in microseconds."""
_MICROSECONDS = 1e6
_GROUP = "rbac.authorization.k8s.io"
_USER = User("user-0", "", (AUTHENTICATED,))


def grants(bindings: int) -> Iterator[Object]:
    """Yield a role, and a binding of the role to each of `count` users."""
    meta = {"apiVersion": f"{_GROUP}/v1"}
    rules = [{"verbs": ["get", "list"], "apiGroups": [""], "resources": ["configmaps"]}]
    yield Object.from_dict({**meta, "kind": "ClusterRole", "metadata": {"name": "bench"}, "rules": rules})
    reference = {"apiGroup": _GROUP, "kind": "ClusterRole", "name": "bench"}
    for number in range(bindings):
        subjects = [{"apiGroup": _GROUP, "kind": "User", "name": f"user-{number}"}]
        fields = {**meta, "kind": "ClusterRoleBinding", "metadata": {"name": f"bench-{number}"}}
        yield Object.from_dict({**fields, "roleRef": reference, "subjects": subjects})


def authorizer_of(bindings: int) -> RbacAuthorizer:
    """Return an authorizer with this number of RoleBindings."""
    index = RbacIndex()
    roles = [Object.from_dict(role.fields) for role in CLUSTER_ROLES]
    bound = [Object.from_dict(binding.fields) for binding in CLUSTER_ROLE_BINDINGS]
    for obj in (*roles, *bound, *grants(bindings)):
        index.apply(obj.resource, obj.key, obj)
    return RbacAuthorizer(index)


def decision(authorizer: RbacAuthorizer, turn: int) -> float:
    """Return the microseconds of an authorization decision that is not cached, measured in one turn."""
    questions = [Attributes("get", "", "", "v1", "configmaps", "", f"n-{turn}", f"c-{n}") for n in range(DECISIONS)]
    began = time.process_time()
    for question in questions:
        assert authorizer.decide(_USER, question).allows
    return (time.process_time() - began) / DECISIONS * _MICROSECONDS


def decisions() -> tuple[float, float]:
    """Return the times of a decision with many bindings and of a decision with few bindings, measured alternately."""
    many, few = authorizer_of(BINDINGS), authorizer_of(FEW)
    turns = [(decision(many, turn), decision(few, turn)) for turn in range(ROUNDS)]
    return median(turn[0] for turn in turns), median(turn[1] for turn in turns)


def prepare(served: Served) -> None:
    """Create the object that the GETs read, and the RoleBindings."""
    body = json.dumps({"metadata": {"name": "bench"}, "data": {"a": "b"}}).encode()
    served.open("POST", "/api/v1/namespaces/default/configmaps", body)
    for obj in grants(BINDINGS):
        served.open("POST", f"/apis/{_GROUP}/v1/{obj.resource.plural}", obj.wire())


def gets() -> tuple[float, float]:
    """Return the cost of a GET on a server with RBAC and on a server that allows everything, measured alternately."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / name for name in ("rbac", "all")]
        for path in paths:
            path.mkdir()
            (path / "tokens.csv").write_text("bench-token,user-0,user-0-uid\n")
            (path / "tokens.csv").chmod(0o600)
        with serving(paths[0]) as guarded, serving(paths[1], "--authorization-mode=AlwaysAllow") as unguarded:
            servers = (guarded, unguarded)
            for served in servers:
                prepare(served)
            asked = (served._replace(token="bench-token") for served in servers)
            with_rbac, without = (RequestSeries(each, each.request("GET", READ)) for each in asked)
            return in_turns(with_rbac, without)


def main(arguments: Sequence[str]) -> int:
    """Measure the times of decisions and GETs, and report these times."""
    many, few = decisions()
    guarded, unguarded = gets()
    claims = [
        Claim(f"an authorization decision with {BINDINGS:,} bindings", many, _LIMIT, 1.0, "us", at_most=True),
        Claim(f"a decision with many bindings, compared with {FEW} bindings", many, few, 1.5, "us", at_most=True),
        Claim("a GET with RBAC, compared with a GET without RBAC", guarded, unguarded, 1.05, "us CPU", at_most=True),
    ]
    return report(claims, arguments)


if __name__ == "__main__":
    run(main, __doc__)

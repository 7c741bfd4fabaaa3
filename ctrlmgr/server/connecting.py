"""Requests for what runs somewhere: logs, shells, proxies. Nothing runs here, and the answer says so.

Guarantees: an object that does not exist is told from one that cannot be reached, in the words that kube-apiserver
has for a cluster without kubelets (`pkg/registry/core/pod/strategy.go`, `pkg/registry/core/service/storage`).
"""

from __future__ import annotations

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.engine.operations import Target
from ctrlmgr.errors import ApiError, BadRequest, ServiceUnavailable


class _Spec(msgspec.Struct, rename="camel"):
    node_name: str = ""


class _Placed(msgspec.Struct):
    spec: _Spec | None = None


def unreachable(target: Target, obj: Object) -> ApiError:
    """Return why what `obj` stands for cannot be connected to."""
    match target.kind.resource.plural:
        case "services":
            return ServiceUnavailable(f'no endpoints available for service "{target.name}"')
        case "pods":
            spec = obj.view(_Placed).spec
            if spec is None or not spec.node_name:
                return BadRequest(f"pod {target.name} does not have a host assigned")
            return ServiceUnavailable(f'no kubelet answers for node "{spec.node_name}"')
    return ServiceUnavailable(f'no kubelet answers for node "{target.name}"')


def object_name(name: str) -> str:
    """Return the name in `[SCHEME:]NAME[:PORT]`, as proxies are asked for (`utilnet.SplitSchemeNamePort`)."""
    parts = name.split(":")
    return parts[1] if len(parts) == 3 else parts[0]

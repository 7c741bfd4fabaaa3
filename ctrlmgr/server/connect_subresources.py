"""Declares the interface of the runtime of simulated containers, and parses the options of requests for containers.

Guarantees: the response shows whether an object does not exist, or exists and cannot be reached. The error messages are
those of kube-apiserver in a cluster without kubelets (`pkg/registry/core/pod/strategy.go`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key, Resource
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.engine.api_errors import not_found
from ctrlmgr.engine.kind import GroupVersionKind
from ctrlmgr.engine.operations import Target
from ctrlmgr.engine.pod_log_options import LogOptions
from ctrlmgr.engine.request_options import Query
from ctrlmgr.engine.strategy import View
from ctrlmgr.engine.watch_cache.cacher import Index
from ctrlmgr.errors import ApiError, BadRequest, ServiceUnavailable
from ctrlmgr.server.routes import ResourcePath

_NODES = Resource("", "nodes")
_FLAGS = ("stdin", "stdout", "stderr", "tty")


class LogChunk(Protocol):
    """A part of the log of a container."""

    @property
    def data(self) -> bytes:
        """The log lines as bytes."""

    @property
    def wait(self) -> float | None:
        """Seconds until more lines are available, if the pod does not change earlier; None at the end of the log."""


class ContainerLogReader(Protocol):
    """Reads the log of a container for one client."""

    def more(self, pod: Object | None, node: Object | None) -> LogChunk:
        """Return the lines that are available now, given the current state of the pod and its node."""


class Output(Protocol):
    """A piece of a command's output."""

    @property
    def at(self) -> float:
        """The time at which the output is written, in simulated seconds after the start of the command."""

    @property
    def is_error(self) -> bool:
        """Whether the output is written to standard error instead of standard output."""

    @property
    def data(self) -> bytes:
        """The written bytes."""


class Execution(Protocol):
    """A command in a simulated container; `now` is in simulated seconds after its start."""

    @property
    def code(self) -> int | None:
        """The exit code of the command; None while the command runs."""

    @property
    def ends_at(self) -> float:
        """The time at which the command ends; it is set together with the exit code."""

    def receive(self, data: bytes, now: float) -> Sequence[Output]:
        """Pass a piece of input to the command; return the output that the command writes then."""

    def end(self, now: float) -> Sequence[Output]:
        """End the command's input; return the output that the command writes then."""


class Executions(Protocol):
    """Runs commands in simulated containers; raises `UnknownError` if the container does not run."""

    def exec(self, pod: Object, node: Object, container: str, options: Unstructured) -> Execution:
        """Start the command that PodExecOptions describe."""

    def attach(self, pod: Object, node: Object, container: str, options: Unstructured) -> Execution | None:
        """Start a shell if the container runs a shell that reads its input; return None for any other container."""

    def listens(self, pod: Object, port: int) -> bool:
        """Return whether a process in the pod listens on a port."""


class Runtime(Protocol):
    """Serves requests for the pods on simulated nodes; methods return None for a pod on any other node."""

    @property
    def index(self) -> Index:
        """The index that the runtime reads; the caller must pass all changes of its objects to the index."""

    def logs(self, pod: Object, node: Object | None, options: LogOptions) -> ContainerLogReader | None:
        """Return a reader for a container's log; None if the pod's node is not simulated.

        Raises `BadRequest` if the options are invalid.
        """

    @property
    def executions(self) -> Executions:
        """The object that runs commands in simulated containers."""

    @property
    def speed(self) -> float:
        """Simulated seconds per real second."""

    def summary(self, node: Object, pods: Sequence[Unstructured]) -> Unstructured:
        """Return the resource usage of a node and its pods, in the format of `/stats/summary` of a kubelet."""

    def is_simulated(self, node: Object | None) -> bool:
        """Return whether the runtime serves the pods on a node."""


class _Spec(msgspec.Struct, rename="camel"):
    node_name: str = ""


class _Placed(msgspec.Struct):
    spec: _Spec | None = None


def has_no_log(target: Target, part: str, obj: Object) -> bool:
    """Return whether the request is for the log of a pod without a node, because such a log is empty."""
    if part != "log" or target.kind.resource.plural != "pods":
        return False
    spec = obj.view(_Placed).spec
    return spec is None or not spec.node_name


def unreachable(target: Target, pod: Object, view: View) -> ApiError:
    """Return the error for connecting to a pod whose node has no kubelet."""
    spec = pod.view(_Placed).spec
    if spec is None or not spec.node_name:
        return BadRequest(f"pod {target.name} does not have a host assigned")
    if view.get(_NODES, Key("", spec.node_name)) is None:
        return not_found(target.kind.resource, spec.node_name)  # Kubernetes also uses the resource `pods` in this case
    return no_kubelet(spec.node_name)


def no_kubelet(node_name: str) -> ApiError:
    """Return the error for a connection to a node that has no kubelet."""
    return ServiceUnavailable(f'no kubelet answers for node "{node_name}"')


def node_of(obj: Object, view: View) -> Object | None:
    """Return the node of a pod; None if the pod has no node."""
    spec = obj.view(_Placed).spec
    return view.get(_NODES, Key("", spec.node_name)) if spec is not None and spec.node_name else None


def connect_options(gvk: GroupVersionKind, query: Query, path: ResourcePath, *, is_folder: bool) -> Unstructured:
    """Return the connect options in a URL's query (such as PodExecOptions), as admission receives them.

    `is_folder` says whether the URL's path ends with a slash.
    """
    options: Unstructured = {"kind": gvk.kind, "apiVersion": gvk.api_version}
    for name in _FLAGS:
        if query.get(name, [""])[0].lower() in ("true", "1"):
            options[name] = True
    if query.get("container", [""])[0]:
        options["container"] = query["container"][0]
    if query.get("command"):
        options["command"] = list(query["command"])
    if ports := [int(port) for port in query.get("ports", ()) if port.isdecimal()]:
        options["ports"] = ports
    if gvk.kind.endswith("ProxyOptions"):
        rest = f"/{path.rest}" if path.rest else ""
        options.update({"path": f"{rest}/" if is_folder else rest} if rest or is_folder else {})
    return options


def object_name(name: str) -> str:
    """Return NAME from `[SCHEME:]NAME[:PORT]`, the form of names in proxy requests (`utilnet.SplitSchemeNamePort`)."""
    parts = name.split(":")
    return parts[1] if len(parts) == 3 else parts[0]

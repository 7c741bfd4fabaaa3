"""Calls the extenders of a KubeSchedulerConfiguration, in the format of `k8s.io/kube-scheduler/extender/v1`.

Guarantees: a call ends within the extender's timeout. The scheduler's thread waits for the call; the event loop does
not wait. A call is not retried, and an answer whose status is not 200 is an error. Pods and nodes are sent without
`kind`, `apiVersion` and `managedFields`, because the caches of kube-scheduler do not contain these fields. As in Go,
field names in answers may be in upper or lower case.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import msgspec
import structlog

from ctrlmgr.api.object import Object
from ctrlmgr.api.resource import Key
from ctrlmgr.client import EngineClient
from ctrlmgr.engine.calls.call import Call, Credentials, Reply
from ctrlmgr.golang.go_text import escape_html
from ctrlmgr.informer import Lister
from ctrlmgr.scheduling.extenders import ExtenderError, Filtered, Victims
from ctrlmgr.scheduling.preemption import Candidate

log = structlog.get_logger(__name__)

_HEADERS: Final = {"Content-Type": "application/json"}


def _folded(name: str) -> str:
    """Return the name of a field in lower case, without underscores."""
    return name.replace("_", "").lower()


class _Meta(msgspec.Struct, frozen=True):
    name: str = ""


class _Node(msgspec.Struct, frozen=True):
    metadata: _Meta = _Meta()


class _Nodes(msgspec.Struct, frozen=True):
    items: tuple[_Node, ...] | None = ()


class _FilterResult(msgspec.Struct, frozen=True, rename=_folded):
    nodes: _Nodes | None = None
    node_names: tuple[str, ...] | None = None
    failed_nodes: dict[str, str] | None = None
    failed_and_unresolvable_nodes: dict[str, str] | None = None
    error: str = ""


class _HostPriority(msgspec.Struct, frozen=True, rename=_folded):
    host: str = ""
    score: int = 0


class _MetaPod(msgspec.Struct, frozen=True, rename=_folded):
    uid: str = ""


class _MetaVictims(msgspec.Struct, frozen=True, rename=_folded):
    pods: tuple[_MetaPod, ...] | None = None
    num_pdb_violations: int = 0


class _PreemptionResult(msgspec.Struct, frozen=True, rename=_folded):
    node_name_to_meta_victims: dict[str, _MetaVictims] | None = None


class _BindingResult(msgspec.Struct, frozen=True, rename=_folded):
    error: str = ""


class ExtenderSettings(NamedTuple):
    """The settings of an extender, from the configuration."""

    url: str
    filter_verb: str = ""
    prioritize_verb: str = ""
    preempt_verb: str = ""
    bind_verb: str = ""
    weight: int = 0
    timeout: float = 5.0
    caches_nodes: bool = False
    """Whether only the names of nodes and the uids of pods are sent to the extender (`nodeCacheCapable`)."""
    managed: frozenset[str] = frozenset()
    """A pod is sent to the extender only if it requests one of these extended resources; if empty, every pod is sent.
    """
    is_ignorable: bool = False
    authorities: bytes = b""
    certificate: bytes = b""
    server_name: str = ""
    is_verified: bool = True

    def is_interested(self, pod: Object) -> bool:
        """Return whether the pod is sent to the extender."""
        if not self.managed:
            return True
        spec = pod.to_dict()["spec"]
        containers = [*spec.get("containers", ()), *(spec.get("initContainers") or ())]
        kinds = [each.get("resources") or {} for each in containers]
        return any(
            name in self.managed for each in kinds for kind in ("requests", "limits") for name in each.get(kind) or ()
        )


class PodExtender:
    """An extender, for the decision about one pod."""

    def __init__(
        self,
        settings: ExtenderSettings,
        pod: Object,
        nodes: Lister,
        pods: Lister,
        send: Callable[[Call], Reply],
    ) -> None:
        """Create an extender that reads nodes and victims from caches, and calls the server with `send`."""
        self._settings = settings
        self._pod = pod
        self._nodes = nodes
        self._pods = pods
        self._send = send

    @property
    def name(self) -> str:
        """Return the URL of the extender."""
        return self._settings.url

    @property
    def is_ignorable(self) -> bool:
        """Whether an error of the extender has no effect on the decision."""
        return self._settings.is_ignorable

    @property
    def weight(self) -> int:
        """The factor of the extender's scores; 0 if the extender does not score nodes."""
        return self._settings.weight if self._settings.prioritize_verb else 0

    @property
    def preempts(self) -> bool:
        """Whether the extender takes part in preemption."""
        return bool(self._settings.preempt_verb)

    @property
    def binds(self) -> bool:
        """Whether the extender binds pods."""
        return bool(self._settings.bind_verb)

    def filter(self, nodes: Sequence[str]) -> Filtered:
        """Return which of these nodes the extender accepts; raises `ExtenderError`."""
        if not self._settings.filter_verb:
            return Filtered(tuple(nodes), {}, {})
        result = self._call(self._settings.filter_verb, self._arguments(nodes), _FilterResult)
        if result.error:
            raise ExtenderError(result.error)
        names: tuple[str, ...] = ()
        if self._settings.caches_nodes and result.node_names is not None:
            names = result.node_names
        elif result.nodes is not None:
            names = tuple(each.metadata.name for each in result.nodes.items or ())
        for name in names:
            if name not in nodes:
                problem = f'claims a filtered node "{name}" which is not found in the input node list'
                raise ExtenderError(f'extender "{self.name}" {problem}')
        return Filtered(names, result.failed_nodes or {}, result.failed_and_unresolvable_nodes or {})

    def prioritize(self, nodes: Sequence[str]) -> dict[str, int]:
        """Return the scores of these nodes, from 0 to 10; raises `ExtenderError`."""
        result = self._call(self._settings.prioritize_verb, self._arguments(nodes), tuple[_HostPriority, ...])
        return {each.host: each.score for each in result}

    def preempt(self, candidates: Sequence[Candidate]) -> dict[str, Victims]:
        """Return the candidate nodes that the extender accepts, with their victims; raises `ExtenderError`."""
        by_uid = self._settings.caches_nodes
        victims = {each.node: self._victims(each, by_uid=by_uid) for each in candidates}
        arguments = {
            "Pod": _wire(self._pod),
            "NodeNameToVictims": None if by_uid else victims,
            "NodeNameToMetaVictims": victims if by_uid else None,
        }
        result = self._call(self._settings.preempt_verb, arguments, _PreemptionResult)
        return {
            node: Victims(tuple(pod.uid for pod in each.pods or ()), each.num_pdb_violations)
            for node, each in (result.node_name_to_meta_victims or {}).items()
        }

    def _victims(self, candidate: Candidate, *, by_uid: bool) -> dict[str, Any]:
        if by_uid:
            pods: list[Any] = [{"UID": each.uid} for each in candidate.victims]
        else:
            found = (self._pods.get(Key(each.namespace, each.key.name)) for each in candidate.victims)
            pods = [_wire(each) for each in found if each is not None]
        return {"Pods": pods, "NumPDBViolations": candidate.violations}

    def bind(self, node: str) -> None:
        """Let the extender bind the pod to a node; raises `ExtenderError`."""
        names = {"PodName": self._pod.name, "PodNamespace": self._pod.namespace}
        arguments = {**names, "PodUID": self._pod.uid, "Node": node}
        result = self._call(self._settings.bind_verb, arguments, _BindingResult)
        if result.error:
            raise ExtenderError(result.error)

    def _arguments(self, nodes: Sequence[str]) -> dict[str, Any]:
        if self._settings.caches_nodes:
            return {"Pod": _wire(self._pod), "Nodes": None, "NodeNames": nodes}
        found = (self._nodes.get(Key("", name)) for name in nodes)
        items = [_wire(each) for each in found if each is not None]
        return {"Pod": _wire(self._pod), "Nodes": {"metadata": {}, "items": items}, "NodeNames": None}

    def _call(self, verb: str, arguments: dict[str, Any], result: Any) -> Any:
        settings, url = self._settings, f"{self._settings.url.rstrip('/')}/{verb}"
        reply = self._send(
            Call(
                url,
                escape_html(msgspec.json.encode(arguments)),
                settings.timeout,
                settings.authorities,
                credentials=Credentials(_HEADERS, settings.certificate),
                server_name=settings.server_name,
                is_checked=settings.is_verified,
                is_plain=True,
            )
        )
        if reply.problem:
            raise ExtenderError(f'Post "{url}": {reply.problem}')
        if reply.code != 200:
            raise ExtenderError(f"failed {verb} with extender at URL {url}, code {reply.code}")
        try:
            return msgspec.convert(_fold(msgspec.json.decode(reply.body)), result)
        except msgspec.MsgspecError as error:
            raise ExtenderError(f"{verb} of extender {url}: {error}") from error


class Extenders:
    """The extenders of a configuration."""

    def __init__(self, settings: Sequence[ExtenderSettings], nodes: Lister, pods: Lister) -> None:
        """Create the extenders, which read nodes and pods from caches."""
        self._settings = settings
        self._nodes = nodes
        self._pods = pods

    def of(self, pod: Object, client: EngineClient) -> list[PodExtender]:
        """Return the extenders that are interested in a pod; the returned extenders make their calls with `client`."""
        interested = (each for each in self._settings if each.is_interested(pod))
        return [PodExtender(each, pod, self._nodes, self._pods, client.call) for each in interested]

    def bind(self, pod: Object, node: str, client: EngineClient) -> None:
        """Let the extender that binds pods bind a pod; if there is no such extender, write the binding.

        Raises `ExtenderError`, and the errors of `client`.
        """
        for each in self.of(pod, client):
            if not each.binds:
                continue
            try:
                return each.bind(node)
            except ExtenderError as error:
                if not each.is_ignorable:
                    raise
                log.info("skipping extender", extender=each.name, error=str(error))
        return client.bind(pod, node)


def _fold(answer: Any) -> Any:
    """Return an answer with its field names in lower case, and without null values; names of nodes are not changed."""
    if isinstance(answer, list):
        return [_fold(each) for each in answer]
    if not isinstance(answer, dict):
        return answer
    fields = {name.lower(): value for name, value in answer.items() if value is not None}
    victims = fields.get("nodenametometavictims")
    if isinstance(victims, dict):
        fields["nodenametometavictims"] = {name: _fold(each) for name, each in victims.items() if each is not None}
    if isinstance(fields.get("pods"), list):
        fields["pods"] = _fold(fields["pods"])
    return fields


def _wire(obj: Object) -> dict[str, Any]:
    """Return a pod or a node without its kind and its managed fields."""
    fields = obj.to_dict()
    metadata = {name: value for name, value in fields["metadata"].items() if name != "managedFields"}
    return {"metadata": metadata, "spec": fields.get("spec") or {}, "status": fields.get("status") or {}}

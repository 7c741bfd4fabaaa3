"""Computes the lifecycle of a pod: everything that has happened to its containers until now.

The guarantees are the same as those of the kubelet that users can observe:
- Init containers run one after the other, and sidecars keep running; afterwards all containers start.
- A container that exits is restarted if the pod's restart policy requires it. The first restart is immediate, and the
  second follows after 10 s. After that, the delay doubles with each restart, up to five minutes. After a run of ten
  minutes, the restart delay is reset.
- If a pod is deleted, or its deadline has passed, its containers are stopped. Normally, a stopped container ends at
  once. A container with a `preStop` sleep ends after the sleep. A container that ignores the signal ends after the
  grace period.
- Ephemeral containers start when they are added, and never start again. Ephemeral containers end together with the pod.

Seconds count from the time at which the node accepted the pod. Each call computes the whole lifecycle again, so no
state is kept between calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ctrlmgr.simulation.behaviour import Behaviour
from ctrlmgr.simulation.container_programs import execute, mount_problem, pulls, variables_of
from ctrlmgr.simulation.container_runs import Container, ContainerStop, Span, run_of, turns
from ctrlmgr.simulation.container_state import Memory, recipe_of, remembered
from ctrlmgr.simulation.probe_results import Verdicts, judge
from ctrlmgr.simulation.shell import Run
from ctrlmgr.simulation.simulated_files import Entry, Files, Shared, Volumes
from ctrlmgr.simulation.simulated_network import OPEN, Network

SANDBOX_TAKES: Final = 0.1
PULL_TAKES: Final = 0.2
CREATE_TAKES: Final = 0.1
FIRST_BACKOFF: Final = 10.0
LONGEST_BACKOFF: Final = 300.0
_FORGIVEN_AFTER: Final = 600.0
_ROUNDS: Final = 5
"""The maximum number of times that a lifecycle is computed. Several computations are needed, because containers may
wait for each other's files.
"""
_PROBLEMS: Final = ("ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "CreateContainerConfigError")
"""The reasons for which a container waits until a user solves a problem."""

ScriptedContainer = Callable[[Container], Behaviour]
"""A function that returns the behaviour of a container."""


@dataclass
class ContainerLife:
    """The lifecycle of a container: its runs, and the reason why it is not running."""

    container: Container
    spans: list[Span] = field(default_factory=list)
    waits_for: str = "ContainerCreating"
    """The reason why the container does not run; empty if the container has exited and restarts at once."""
    message: str = ""
    pulled: bool = False
    is_done: bool = False
    """Whether the container never starts again."""
    memory: Memory | None = None
    """The content of the container's id, which contains the time from which `spans` are computed."""
    recorded: Mapping[str, Any] = field(default_factory=dict)
    """The recorded status of the container; the runs in `spans` follow this status."""
    killed_at: float | None = None
    """The time at which the recorded run was stopped because the container's behaviour had changed."""
    is_kept: bool = False
    """Whether the recorded status is final, because the container had ended before its behaviour changed."""
    next_change: float | None = None
    files: Files | None = None
    """The files of the container's last run."""

    @property
    def name(self) -> str:
        """The name of the container."""
        return str(self.container["name"])

    @property
    def has_run(self) -> bool:
        """Return whether the container has run at least once."""
        return bool(self.spans or self.recorded.get("containerID"))

    def running(self, now: float) -> Span | None:
        """Return the run of the container at a given time; None if the container does not run at that time."""
        last = self.spans[-1] if self.spans else None
        return last if last is not None and (last.end is None or last.end > now) else None

    def ended(self, now: float) -> list[Span]:
        """Return the runs that have ended at a given time."""
        return [each for each in self.spans if each.end is not None and each.end <= now]

    def is_ready(self, now: float) -> bool:
        """Return whether the container is ready at a given time."""
        span = self.running(now)
        return span is not None and span.verdicts.is_ready(now - span.start)

    def is_started(self, now: float) -> bool:
        """Return whether the container runs at a given time, and its startup probe has passed."""
        span = self.running(now)
        return (
            span is not None and span.verdicts.started_at is not None and now >= span.start + span.verdicts.started_at
        )


@dataclass
class Life:
    """The computed lifecycle of a pod."""

    init: list[ContainerLife]
    main: list[ContainerLife]
    is_initialized: bool = False
    ended_at: float | None = None
    """The time at which the pod succeeded or failed; None if it has not ended."""
    reason: str = ""
    message: str = ""
    next_change: float | None = None
    ephemeral: list[ContainerLife] = field(default_factory=list)
    told: Sequence[tuple[str, str, Entry]] = ()
    """The changes that the pod's containers made in shared volumes: the place, the path and the content of each change.
    """

    @property
    def containers(self) -> Sequence[ContainerLife]:
        """All containers of the pod."""
        return (*self.init, *self.main, *self.ephemeral)

    def has_stopped(self, now: float) -> bool:
        """Return whether all containers of the pod have stopped."""
        return not any(each.running(now) for each in self.containers)


def is_sidecar(container: Container) -> bool:
    """Return whether an init container is a sidecar."""
    return container.get("restartPolicy") == "Always"


class _Pod:
    """The data that all runs of the containers of a pod have in common."""

    def __init__(
        self, pod: Mapping[str, Any], scripted: ScriptedContainer, now: float, volumes: Volumes, network: Network
    ) -> None:
        self.pod = pod
        self.asked = scripted
        self.now = now
        self.policy = str(pod["spec"].get("restartPolicy") or "Always")
        # The reason why a container waits before its first start (`convertToAPIContainerStatuses` in
        # `kubelet_pods.go`).
        self.first_wait = "PodInitializing" if pod["spec"].get("initContainers") else "ContainerCreating"
        self.volumes = volumes
        self.network = network
        self.recorded = {each["name"]: each for each in _statuses(pod)}
        # Containers with the recorded state running have run. The recorded times are whole seconds, so the deletion can
        # seem to be earlier.
        self.seen = {name for name, each in self.recorded.items() if each.get("containerID")}

    def files(self, container: Container, start: float, variables: Mapping[str, str]) -> Files:
        """Return the files of a run that begins at `start`."""
        context = container.get("securityContext") or {}
        return Files(
            container["name"],
            start,
            self.volumes.mounts(container, variables),
            self.volumes,
            is_read_only=bool(context.get("readOnlyRootFilesystem")),
        )


def _statuses(pod: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    status = pod.get("status") or {}
    fields = ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")
    return [each for field in fields for each in status.get(field) or ()]


def live(
    pod: Mapping[str, Any],
    scripted: ScriptedContainer,
    now: float,
    end: ContainerStop | None,
    shared: Shared | None = None,
    network: Network = OPEN,
) -> Life:
    """Compute the lifecycle of a pod up to `now` seconds after its node accepted the pod.

    The argument `end` is the stop of the pod because of its deletion; it is None if the pod is not deleted. The
    argument `shared` contains the changes that other pods made in shared volumes. The argument `network` simulates the
    connections of the pod's containers.
    """
    spec = pod["spec"]
    deadline = spec.get("activeDeadlineSeconds")
    found = _live(pod, scripted, now, end, shared, network)
    late = deadline is not None and (found.ended_at is None or found.ended_at > deadline)
    if late and (end is None or deadline < end.at):
        if now < deadline:
            found.next_change = _earliest([found.next_change, float(deadline)])
            return found
        grace = float(spec.get("terminationGracePeriodSeconds") or 0)
        found = _live(pod, scripted, now, ContainerStop(float(deadline), grace), shared, network)
        found.ended_at = float(deadline)
        found.reason = "DeadlineExceeded"
        found.message = "Pod was active on the node longer than the specified deadline"
    return found


def _live(
    pod: Mapping[str, Any],
    scripted: ScriptedContainer,
    now: float,
    end: ContainerStop | None,
    others: Shared | None,
    network: Network,
) -> Life:
    """Compute the lifecycle of a pod.

    The computation is repeated as long as a file that one container has written may change another container.
    """
    volumes = Volumes(pod, others, now)
    for _ in range(_ROUNDS):
        before = volumes.written()
        found = _lived(_Pod(pod, scripted, now, volumes, network), end)
        if volumes.written() == before:
            break
    found.told = volumes.shared_changes()
    found.next_change = _earliest([found.next_change, *_looks(found, volumes, now)])
    return found


def _looks(found: Life, volumes: Volumes, now: float) -> Iterator[float]:
    """Yield the times at which shared files are written or may be read."""
    if found.ended_at is None or found.ended_at > now:
        yield from (each.at for _, _, each in found.told if each.at > now)
        yield from () if volumes.next_look is None else (volumes.next_look,)


def _lived(common: _Pod, end: ContainerStop | None) -> Life:
    spec, now = common.pod["spec"], common.now
    found = Life([], [])
    begin: float | None = SANDBOX_TAKES
    for container in spec.get("initContainers") or ():
        life = _container(common, container, begin, end, sidecar=is_sidecar(container), init=True)
        found.init.append(life)
        begin, failed = _goes_on(life, container, common)
        if failed is not None:
            found.ended_at = failed
    found.is_initialized = begin is not None and begin <= now
    for container in spec.get("containers") or ():
        life = _container(common, container, begin if found.ended_at is None else None, end, sidecar=False, init=False)
        found.main.append(life)
    if found.ended_at is None and found.main and all(each.is_done for each in found.main):
        never = end.at if end is not None else 0.0
        found.ended_at = max((each.spans[-1].end or 0.0 for each in found.main if each.spans), default=never)
        _end_sidecars(found, common, end)
    stop = _sooner(end, common, found.ended_at)
    found.ephemeral = [_ephemeral(common, each, stop) for each in spec.get("ephemeralContainers") or ()]
    found.next_change = _earliest(each.next_change for each in found.containers)
    return found


def _ephemeral(common: _Pod, container: Container, stop: ContainerStop | None) -> ContainerLife:
    """Compute the lifecycle of an ephemeral container.

    An ephemeral container that has not started starts now, because no field contains the time of its start.
    """
    now, begin = common.now, None
    if now >= SANDBOX_TAKES and (stop is None or now < stop.at):
        recorded = common.recorded.get(container["name"]) or {}
        waited_for = ((recorded.get("state") or {}).get("waiting") or {}).get("reason")
        begin = now - _delays(common.asked(container)) - (1.0 if waited_for in _PROBLEMS else 0.0)
    return _container(common, container, begin, stop, sidecar=False, init=False, policy="Never")


def _sooner(end: ContainerStop | None, common: _Pod, over: float | None) -> ContainerStop | None:
    """Return the earlier of two stops: by the pod's deletion, and by the end of its main containers (`over`)."""
    if over is None or (end is not None and end.at <= over):
        return end
    return ContainerStop(over, float(common.pod["spec"].get("terminationGracePeriodSeconds") or 0))


def _end_sidecars(found: Life, common: _Pod, end: ContainerStop | None) -> None:
    """Stop the sidecars of a pod whose main containers have all ended."""
    sooner = _sooner(end, common, found.ended_at or 0.0)
    for index, life in enumerate(found.init):
        if is_sidecar(life.container) and life.spans:
            begin = life.spans[0].start - _delays(common.asked(life.container))
            found.init[index] = _container(common, life.container, begin, sooner, sidecar=True, init=True)


def _goes_on(life: ContainerLife, container: Container, common: _Pod) -> tuple[float | None, float | None]:
    """Return when the next container begins, and when the pod failed; each is None if it has not happened yet."""
    if is_sidecar(container):
        span = life.spans[-1] if life.spans else None
        if span is None or span.verdicts.started_at is None:
            return None, None
        return span.start + span.verdicts.started_at, None
    if not life.is_done or not life.spans:
        return None, None
    last = life.spans[-1]
    if last.code == 0:
        return last.end, None
    return None, last.end if common.policy == "Never" else None


def _delays(behaviour: Behaviour) -> float:
    return (PULL_TAKES if behaviour.pull_takes is None else behaviour.pull_takes) + CREATE_TAKES


def _container(
    common: _Pod,
    container: Container,
    begin: float | None,
    end: ContainerStop | None,
    *,
    sidecar: bool,
    init: bool,
    policy: str = "",
) -> ContainerLife:
    """Compute the lifecycle of a container that may start at the time `begin`.

    If `begin` is None, the container may not start yet. The argument `policy` is the restart policy of the container;
    the default is the restart policy of the pod.
    """
    life = ContainerLife(container, waits_for=common.first_wait)
    common.volumes.keep(life.name)
    life.recorded = common.recorded.get(life.name) or {}
    memory = remembered(life.recorded.get("containerID") or "")
    if memory is None and (begin is None or begin > common.now):
        life.next_change = begin
        return life
    behaviour = common.asked(container)
    policy = "Always" if sidecar else policy or common.policy
    if init and policy == "Always" and not sidecar:
        policy = "OnFailure"  # An init container must succeed once.
    recipe = recipe_of(container, behaviour)
    if memory is None:
        _begin(life, common, behaviour, recipe, begin or 0.0)
    elif memory.recipe == recipe:
        life.pulled, life.memory = True, memory
    else:
        _tell(life, common, behaviour, memory, recipe, policy)
    if life.memory is not None:
        life.waits_for, life.message = common.first_wait, ""
        _run(life, common, behaviour, life.memory, end, policy)
    return life


def _begin(life: ContainerLife, common: _Pod, behaviour: Behaviour, recipe: str, begin: float) -> None:
    """Start a container that has not run yet, or set the reason why it cannot start."""
    pulled_at = begin + (PULL_TAKES if behaviour.pull_takes is None else behaviour.pull_takes)
    problem = _unpullable(life.container, behaviour)
    if problem or pulled_at > common.now:
        life.waits_for, life.message, life.next_change = common.first_wait, "", pulled_at
        if problem and pulled_at <= common.now:
            _cannot_pull(life, problem, common.now - pulled_at, pulled_at)
        return
    life.pulled = True
    if problem := mount_problem(life.container, variables_of(common.pod, life.container)):
        life.waits_for, life.message = "CreateContainerConfigError", problem
        return
    waited_for = ((life.recorded.get("state") or {}).get("waiting") or {}).get("reason")
    late = common.now if waited_for in _PROBLEMS else 0.0  # The precondition of the container is met only now.
    life.memory = Memory(recipe, max(pulled_at + CREATE_TAKES, late))


def _tell(life: ContainerLife, common: _Pod, behaviour: Behaviour, memory: Memory, recipe: str, policy: str) -> None:
    """Apply a new behaviour that is different from the behaviour when the container's status was written."""
    state, restarts = life.recorded.get("state") or {}, int(life.recorded.get("restartCount") or 0)
    ended, now = state.get("terminated"), common.now
    life.pulled = True
    if ended is not None and not _starts_again(policy, int(ended.get("exitCode") or 0)):
        run = Span(0.0, 0.0, int(ended.get("exitCode") or 0), "", "", Run(), Verdicts(None, (), None))
        life.spans, life.is_done, life.is_kept = [run], True, True
    elif "running" in state and life.recorded.get("image") == life.container.get("image"):
        life.memory = Memory(recipe, memory.current, restarts, now - memory.current)
    else:
        life.killed_at = now if "running" in state else None
        if problem := _unpullable(life.container, behaviour):
            _cannot_pull(life, problem, 0.0 if life.killed_at is not None else now, now)
        else:
            life.memory = Memory(recipe, now, restarts + 1)


def _starts_again(policy: str, code: int) -> bool:
    return policy == "Always" or (policy == "OnFailure" and code != 0)


def _unpullable(container: Container, behaviour: Behaviour) -> str:
    if container.get("imagePullPolicy") == "Never" and not behaviour.pull_takes:
        return "ErrImageNeverPull"
    return "ErrImagePull" if behaviour.pull_fails or not pulls(container.get("image", "")) else ""


def _cannot_pull(life: ContainerLife, problem: str, since: float, pulled_at: float) -> None:
    image = life.container.get("image", "")
    if problem == "ErrImageNeverPull":
        life.waits_for, life.next_change = problem, None
        life.message = f'Container image "{image}" is not present with pull policy of Never'
    elif since < 1.0:
        life.waits_for, life.next_change = problem, pulled_at + 1.0
        life.message = f'failed to pull and unpack image "{image}": not found'
    else:
        life.waits_for, life.next_change = "ImagePullBackOff", None
        life.message = (
            f'Back-off pulling image "{image}": ErrImagePull: failed to pull and unpack image "{image}": not found'
        )


def _run(
    life: ContainerLife, common: _Pod, behaviour: Behaviour, memory: Memory, end: ContainerStop | None, policy: str
) -> None:
    """Add the runs of a container from the time in `memory` to the current time."""
    container, failures, start = life.container, 0, memory.first
    variables = variables_of(common.pod, container)
    while True:
        if end is not None and start >= end.at and (life.spans or life.name not in common.seen):
            life.is_done, life.next_change = True, None
            return
        if start > common.now:
            life.next_change = start
            return
        files = common.files(container, start, variables)
        logged_until = memory.told if not life.spans else 0.0
        run = execute(container, behaviour.after(logged_until), len(life.spans), files, variables, common.network)
        if run.ends_at is not None and run.ends_at < logged_until:
            run.ends_at = logged_until  # The new behaviour cannot apply earlier than this.
        verdicts = judge(container, behaviour.after(logged_until), files, variables, common.network)
        span = run_of(container, behaviour, run, start, end, files, verdicts)
        life.spans.append(span)
        life.files = files
        if span.end is not None:
            common.volumes.keep(life.name, span.end)
        if span.end is None or span.end > common.now:
            life.next_change = _earliest([span.end, *turns(span, common.now)])
            return
        told_to = end is not None and span.end >= end.at
        if told_to or not _starts_again(policy, span.code):
            life.is_done, life.next_change = True, None
            return
        failures = 0 if span.end - span.start > _FORGIVEN_AFTER else failures + 1
        delay = 0.0 if failures <= 1 else min(FIRST_BACKOFF * 2.0 ** min(failures - 2, 16), LONGEST_BACKOFF)
        life.waits_for, life.message = _backs_off(common.pod, life, delay) if delay else ("", "")
        start = span.end + delay + CREATE_TAKES


def _backs_off(pod: Mapping[str, Any], life: ContainerLife, delay: float) -> tuple[str, str]:
    meta = pod["metadata"]
    where = f"{meta['name']}_{meta.get('namespace', '')}({meta.get('uid', '')})"
    wait = f"{int(delay)}s" if delay < 60 else f"{int(delay) // 60}m{int(delay) % 60}s"
    return "CrashLoopBackOff", f"back-off {wait} restarting failed container={life.name} pod={where}"


def _earliest(moments: Iterable[float | None]) -> float | None:
    return min((each for each in moments if each is not None), default=None)

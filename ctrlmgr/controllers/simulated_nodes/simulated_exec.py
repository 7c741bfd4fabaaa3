"""Runs commands in containers of simulated pods: `kubectl exec`, `attach` to a shell, and `cp`.

Guarantees: a command sees the files of the container's current run, with the changes of earlier commands. File changes
that commands make are kept in the memory of this process until the run ends. Probes and the container itself do not see
these changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from ctrlmgr.api.object import Object
from ctrlmgr.api.unstructured import Unstructured
from ctrlmgr.caches import BoundedCache
from ctrlmgr.clock import Clock
from ctrlmgr.controllers.simulated_nodes.behaviour_rules import Rules
from ctrlmgr.controllers.simulated_nodes.cluster_services import Services
from ctrlmgr.controllers.simulated_nodes.simulated_time import PodTime, asked_of, ips_of
from ctrlmgr.errors import UnknownError
from ctrlmgr.simulation.agnhost_servers import server_of
from ctrlmgr.simulation.container_programs import variables_of, words_of
from ctrlmgr.simulation.pod_lifecycle import ContainerLife, live
from ctrlmgr.simulation.shell.archive_tools import COMMAND_LINE
from ctrlmgr.simulation.shell.console import Chunk, Command, Setting, Terminal, command
from ctrlmgr.simulation.shell.shell_interpreter import SHELLS
from ctrlmgr.simulation.simulated_files import Files

_RUNS: Final = 1024
"""The maximum number of container runs whose changed files are kept."""
_BYTES: Final = 64 << 20
"""The maximum total size of the changed files, in bytes."""

Changes = dict[str, str | None]


class _Key(NamedTuple):
    uid: str
    container: str
    start: float


class Executions:
    """Starts commands in simulated containers. An instance must be used on the event loop only."""

    def __init__(self, rules: Rules, services: Services, speed: float, *, clock: Clock) -> None:
        """Create an instance that uses the same behaviour rules and speed as the simulated kubelets."""
        self._rules = rules
        self._services = services
        self._speed = speed
        self._clock = clock
        self._changes: BoundedCache[_Key, Changes] = BoundedCache("simulated-files", entries=_RUNS, size=_BYTES)

    def exec(self, pod: Object, node: Object, container: str, options: Unstructured) -> Execution:
        """Start the command in a request (PodExecOptions); raises `UnknownError` if the container does not run."""
        words = [str(each) for each in options.get("command", ())]
        return self._start(pod, node, container, words, is_terminal=bool(options.get("tty")))

    def attach(self, pod: Object, node: Object, container: str, options: Unstructured) -> Execution | None:
        """Start a shell if the container runs a shell that reads its input; return None for any other container."""
        whole = pod.to_dict()["spec"]
        known = (*whole["containers"], *(whole.get("ephemeralContainers") or ()))
        spec: dict[str, Any] = next((each for each in known if each["name"] == container), {})
        words = words_of(spec) or ["sh"]
        if not (spec.get("stdin") and options.get("stdin") and words[0].rsplit("/", 1)[-1] in SHELLS):
            return None
        return self._start(pod, node, container, words, is_terminal=bool(options.get("tty")))

    def listens(self, pod: Object, port: int) -> bool:
        """Return whether a container declares a port, or runs a known server that listens on the port."""
        for each in pod.to_dict()["spec"]["containers"]:
            server = server_of(each.get("image", "").rsplit("/", 1)[-1].partition(":")[0], words_of(each))
            declared = {int(port["containerPort"]) for port in each.get("ports") or ()}
            if port in declared or (server is not None and port in server.ports):
                return True
        return False

    def _start(
        self, pod: Object, node: Object, container: str, words: Sequence[str], *, is_terminal: bool
    ) -> Execution:
        now, fields = self._clock.now(), pod.to_dict()
        time = PodTime.of(fields, now, self._speed)
        network = self._services.seen_by(pod.key, time, ips_of(fields), is_told=False)
        asked = asked_of(fields, self._rules, node.annotations)
        life = live(fields, asked, time.seconds(now), time.end(fields), None, network)
        found = next((each for each in life.containers if each.name == container), None)
        span = found.running(time.seconds(now)) if found is not None else None
        if found is None or found.files is None or span is None:
            raise UnknownError(f'container not found ("{container}")')
        key = _Key(pod.uid, container, span.start)
        files = self._files(key, found, found.files, time.seconds(now))
        setting = Setting(files, variables_of(fields, found.container), network)
        return Execution(command(words, setting, is_terminal=is_terminal), key, self._changes)

    def _files(self, key: _Key, life: ContainerLife, files: Files, now: float) -> Files:
        first = "".join(f"{each}\0" for each in words_of(life.container) or [str(life.container.get("image", ""))])
        return files.copied(now, {COMMAND_LINE: first, **(self._changes.get(key) or {})})


class Execution:
    """A running command to which a client sends input."""

    def __init__(self, running: Command | Terminal, key: _Key, changes: BoundedCache[Any, Changes]) -> None:
        """Create an instance that stores the files which the command changes under `key`."""
        self._running = running
        self._key = key
        self._changes = changes

    @property
    def code(self) -> int | None:
        """The exit code of the command; None while the command runs."""
        return self._running.code

    @property
    def ends_at(self) -> float:
        """The time when the command ends, in simulated seconds after its start.

        The time is valid once the exit code is known.
        """
        return self._running.ends_at

    def receive(self, data: bytes, now: float) -> Sequence[Chunk]:
        """Return the output that a piece of input causes; `now` is in simulated seconds after the start."""
        chunks = self._running.receive(data, now)
        self._keep()
        return chunks

    def end(self, now: float) -> Sequence[Chunk]:
        """Return the output that the end of the input causes."""
        chunks = self._running.end(now)
        self._keep()
        return chunks

    def _keep(self) -> None:
        changes = {path: text for path, text in self._running.files.changed.items() if path != COMMAND_LINE}
        if changes:
            self._changes.put(self._key, changes, sum(len(text or "") for text in changes.values()))

"""The worker process runs its server's jobs one after the other, and reads the jobs from a socket on stdin.

Guarantees:
- The worker process uses at most `MOST_MEMORY` bytes of memory. A request that needs more memory gets a 413 response,
  and the worker process exits.
- If the server exits, an idle worker exits at once, and a busy worker at most `LONGEST` seconds after the start of its
  job.
- The worker does not access the log, because the server does all reads and appends.
"""

from __future__ import annotations

import gc
import os
import resource
import signal
import socket
import sys
import traceback
from random import Random
from typing import Any, Final

from ctrlmgr.api.resource import DEFINITIONS
from ctrlmgr.clock import OtherTime, SystemClock
from ctrlmgr.engine.kind_registry import Kinds
from ctrlmgr.engine.operations import Compute, Operation
from ctrlmgr.engine.request_options import Body
from ctrlmgr.engine.write_engine import WriteEngine
from ctrlmgr.errors import CtrlmgrError, RequestEntityTooLarge, StatusDetails
from ctrlmgr.largebodies.blueprint import Blueprint, Rights
from ctrlmgr.largebodies.jobs import reporting_body
from ctrlmgr.largebodies.messages import Job, JobResult, WorkerSocket, loaded
from ctrlmgr.largebodies.server_state import RemoteAuthorizer, RemoteIndex, RemoteState

MOST_MEMORY: Final = 1 << 30
"""The limit of the process's address space in bytes; a request with the largest allowed body needs a third of this."""
LONGEST: Final = 60
"""The seconds after which the worker process ends itself during a job, unless the server ends the process earlier."""
_NICE: Final = 5
"""The niceness of the worker process, which has a lower priority than its server."""


class Worker:
    """Runs the server's jobs in the worker process."""

    def __init__(self, line: WorkerSocket, kinds: Kinds, blueprint: Blueprint) -> None:
        """Create a worker with the kinds and admission of a blueprint, which queries the server over `line`."""
        self._line = line
        self._kinds = kinds
        self._epoch = -1
        self._now = 0
        self._random = Random(0)
        self._state = RemoteState(line.ask)
        clock = OtherTime(lambda: self._now, SystemClock())
        rights = Rights(RemoteAuthorizer(line.ask), RemoteIndex(line.ask))
        admission = blueprint.made(kinds, rights, clock)
        self._engine = WriteEngine(kinds, self._state, clock=clock, random=self._random, admission=admission)

    def do(self, job: Job) -> JobResult:
        """Run one job and return the job's result."""
        self._now = job.now
        self._random.seed(job.seed)
        self._state.forget()
        try:
            return JobResult(self._run(self._operation(job)))
        except CtrlmgrError as error:
            return JobResult(error=error)
        except MemoryError:
            return _out_of_memory()
        except Exception:
            return JobResult(failure=traceback.format_exc())

    def _operation(self, job: Job) -> Operation[Any]:
        if job.epoch != self._epoch:
            self._kinds.refresh(self._state.list(DEFINITIONS))
            self._epoch = job.epoch
        function, arguments = loaded(job.work, self._kinds.by_gvk)
        operation: Operation[Any] = function(self._engine, *map(self._received, arguments))
        return operation

    def _received(self, argument: Any) -> Any:
        """If the job's argument is a body, return a body that reports to the server's audit log.

        The method returns any other argument unchanged.
        """
        if not isinstance(argument, Body):
            return argument
        return reporting_body(argument, self._line.ask)

    def _run(self, operation: Operation[Any]) -> Any:
        try:
            command = next(operation)
            while True:
                try:
                    answer = command.call() if isinstance(command, Compute) else self._obeyed(command)
                except CtrlmgrError as error:
                    command = operation.throw(error)
                else:
                    command = operation.send(answer)
        except StopIteration as stop:
            return stop.value

    def _obeyed(self, command: Any) -> Any:
        try:
            return self._line.ask("command", command)
        finally:
            self._state.forget()


def _out_of_memory() -> JobResult:
    error = RequestEntityTooLarge(
        "Request entity is too large: it takes more memory than the server gives to one request",
        details=StatusDetails(),
    )
    return JobResult(error=error, out_of_memory=True)


def main() -> None:
    """Run jobs until the server closes the socket."""
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_IGN)  # the server terminates this process
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    most = MOST_MEMORY if hard == resource.RLIM_INFINITY else min(MOST_MEMORY, hard)
    resource.setrlimit(resource.RLIMIT_AS, (most, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.nice(_NICE)
    known: list[Kinds] = []
    line = WorkerSocket(socket.socket(fileno=sys.stdin.fileno()), lambda gvk: known[0].by_gvk(gvk) if known else None)
    try:
        serve(line, known)
    except MemoryError:
        signal.raise_signal(signal.SIGKILL)  # not enough memory is left to send a message or to exit in order
    except (EOFError, OSError):
        return


def serve(line: WorkerSocket, known: list[Kinds]) -> None:
    """Run jobs; raises `EOFError` or `OSError` when the server closes the socket."""
    blueprint: Blueprint = line.receive()
    known.append(blueprint.kinds())
    worker = Worker(line, known[0], blueprint)
    gc.collect()
    gc.freeze()
    gc.disable()  # a garbage collection would traverse a large body and find no garbage
    line.send(JobResult())
    while True:
        job: Job = line.receive()
        signal.alarm(LONGEST)
        done = worker.do(job)
        del job
        line.send(done)
        signal.alarm(0)
        if done.out_of_memory:
            return
        del done
        gc.collect()


if __name__ == "__main__":
    main()

"""Runs the real kubectl: a function takes a command line and returns kubectl's output or its error message."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.e2e.serving import DEADLINE


def find_kubectl() -> str:
    """Return the path of kubectl; fail the test if kubectl is not installed."""
    program = os.environ.get("CTRLMGR_TEST_KUBECTL") or shutil.which("kubectl")
    if not program:
        pytest.fail("kubectl was not found: run scripts/test, which fetches it, or set CTRLMGR_TEST_KUBECTL")
    return program


@cache
def _minor(program: str) -> int:
    told = subprocess.run([program, "version", "--client", "-o", "json"], capture_output=True, check=True)
    version: str = json.loads(told.stdout)["clientVersion"]["gitVersion"]
    return int(version.split(".")[1])


class KubectlResult(NamedTuple):
    """The result of a kubectl command: exit code, output and error output."""

    code: int
    out: str
    err: str


class Kubectl:
    """Runs kubectl against one server, in one namespace.

    A command is written as in a shell, but without the word `kubectl`: `kubectl("get configmaps -o name")`.
    """

    def __init__(self, program: str, kubeconfig: Path, home: Path, namespace: str = "default") -> None:
        """Keep kubectl's caches in the folder `home`, so that kubectl does not change the user's own caches."""
        self.program = program
        self.namespace = namespace
        self._kubeconfig = kubeconfig
        self._home = home

    def within(self, namespace: str) -> Kubectl:
        """Return a runner for another namespace; if the namespace is empty, manifests choose the namespace."""
        return Kubectl(self.program, self._kubeconfig, self._home, namespace)

    @property
    def minor(self) -> int:
        """The minor version of kubectl: 30 for version 1.30."""
        return _minor(self.program)

    def since(self, minor: int) -> None:
        """Skip the test if kubectl is older than 1.`minor`."""
        if self.minor < minor:
            pytest.skip(f"kubectl 1.{self.minor} cannot do this, 1.{minor} can")

    def __call__(self, command: str, stdin: object = None, **variables: str) -> str:
        """Run a command and return its output; the test fails if the command fails."""
        done = self.run(command, stdin, **variables)
        assert done.code == 0, f"kubectl {command}: {done}"
        return done.out

    def fails(self, command: str, stdin: object = None, **variables: str) -> str:
        """Run a command that must end with exit code 1, and return its error output."""
        done = self.run(command, stdin, **variables)
        assert done.code == 1, f"kubectl {command}: {done}"
        return done.err

    def get(self, what: str) -> Any:
        """Return an object, decoded from kubectl's JSON output."""
        return json.loads(self(f"get {what} -o json"))

    def run(self, command: str, stdin: object = None, **variables: str) -> KubectlResult:
        """Run a command; `stdin` is passed to the command, as JSON if it is not a string."""
        text = stdin if isinstance(stdin, str) else "" if stdin is None else json.dumps(stdin)
        ended = subprocess.run(
            self.line(command),
            input=text,
            capture_output=True,
            text=True,
            timeout=2 * DEADLINE,
            env=self.environment | variables,
        )
        return KubectlResult(ended.returncode, ended.stdout, ended.stderr)

    @contextmanager
    def started(self, command: str, **variables: str) -> Iterator[subprocess.Popen[str]]:
        """Start a command with an open standard input and yield its process, which is killed after the block."""
        pipe = subprocess.PIPE
        environment = self.environment | variables
        with subprocess.Popen(
            self.line(command), stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=environment
        ) as process:
            try:
                yield process
            finally:
                process.kill()

    @contextmanager
    def watching(self, command: str) -> Iterator[subprocess.Popen[str]]:
        """Start a command that watches, and yield its process as soon as the server has accepted the watch."""
        with self.started(f"{command} -v=6") as process:
            assert process.stderr is not None
            told = []
            for line in process.stderr:
                told.append(line)
                if "watch=true" in line and "200 OK" in line:
                    break
            else:
                pytest.fail(f"kubectl {command} did not watch: {''.join(told)}")
            yield process

    def line(self, command: str) -> list[str]:
        """Split a command line into words, and add the program and the namespace."""
        verb, *words = shlex.split(command)
        within = [f"--namespace={self.namespace}"] if self.namespace else []
        return [self.program, verb, *within, *words]

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables of kubectl."""
        return {
            "PATH": os.environ.get("PATH", ""),
            "HOME": str(self._home),
            "TMPDIR": str(self._home),
            "KUBECONFIG": str(self._kubeconfig),
            "LC_ALL": "C",
            "GOGC": "off",  # the process ends before a collection is worth its time
        }


def lines(process: subprocess.Popen[str], count: int) -> list[str]:
    """Return `count` lines of a process's output; each run of blanks becomes one blank."""
    assert process.stdout is not None
    return [squeezed(process.stdout.readline()) for _ in range(count)]


def patch(what: str, fields: object, flags: str = "") -> str:
    """Return the command that patches an object, with a strategic merge patch unless a flag selects another type."""
    return f"patch {what} -p {shlex.quote(json.dumps(fields))} {flags}"


def squeezed(text: str) -> str:
    """Return a string without alignment: each run of blanks becomes one blank, and lines have no
    blanks at their ends.
    """
    return "\n".join(" ".join(line.split()) for line in text.strip().splitlines())

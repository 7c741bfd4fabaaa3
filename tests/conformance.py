"""Compares the responses of `ctrlmgr serve` with the recorded responses of Kubernetes 1.36.2.

`scripts/conformance` runs this module with:

    python -m tests.conformance [--database URL] [PART] [REGEX]

`PARTS` contains each part of the recordings, with the server options for the part. For each part, the script starts a
server with these options in a temporary directory; the part `hashes` needs no server. The argument REGEX selects
groups, scenarios, mutations or cases by name. The script prints the numbers of equal and different responses. The exit
code is 1 if there are differences, and 2 if the server does not start. The recordings are read from
`../shared/conformance`, or from the directory in the environment variable CONFORMANCE; `cases` are read from the
directory next to the recordings. The environment variable SETTLE_SCALE (default 0.2) multiplies the pauses of
scenarios.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import signal
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, NamedTuple

import click
import yaml

from ctrlmgr.cli import ctrlmgr as program
from tests.controllers.workloads.recorded_hashes import recorded_hash

_RANGES = ("--service-cluster-ip-range=10.96.0.0/16,fd00:10:96::/112", "--service-node-port-range=30000-32767")
_NO_ACCOUNTS = ("--disable-admission-plugins=ServiceAccount",)
_ADMIN = "admin-token"

HASHES = "hashes"
"""The part of the recordings that needs no server: `template-hashes.json.gz`."""


Run = Callable[["Comparison"], bool]
"""A function that compares one part with a server, prints the differences, and returns whether the part has no
differences.
"""


@dataclass(frozen=True, kw_only=True)
class Part:
    """One part of the recordings: requests with their responses, or scenarios with their expectations.

    In flags and options, `{work}` stands for the temporary directory, into which `writes_setup` writes the files of the
    corpus.
    """

    data: str
    flags: Sequence[str]
    expected: str = ""
    options: Sequence[str] = ()
    writes_setup: bool = False
    tokens: str = ""
    """The lines of a token file; flags refer to this file as `{work}/tokens.csv`."""
    token: str = ""
    """The user that sends the requests; by default, the administrator of the server."""
    jobs: int = 4
    run: Run | None = None
    """The function that compares this part; by default, it compares scenarios if `expected` is set, and otherwise a
    corpus of requests.
    """


PARTS = {
    "wire": Part(
        data="wire/corpus.json.gz",
        flags=(
            *_RANGES,
            *_NO_ACCOUNTS,
            "--controllers=*,-serviceaccount,-root-ca-certificate-publisher,-pod-garbage-collector,-service-cidr",
        ),
        options=("--compact-cmd", "{ctrlmgr} compact --database {database} --older-than 0s"),
    ),
    "scenarios": Part(
        data="scenarios",
        expected="expected.json.gz",
        flags=(
            *_RANGES,
            *_NO_ACCOUNTS,
            "--controllers=endpoint,endpointslice,endpointslicemirroring,namespace,garbage-collector",
        ),
    ),
    "workloads": Part(
        data="scenarios-workloads",
        expected="expected-workloads.json.gz",
        flags=(
            *_RANGES,
            *_NO_ACCOUNTS,
            "--controllers=deployment,replicaset,replicationcontroller,statefulset,daemonset,job,cronjob,disruption,"
            "horizontal-pod-autoscaler,ttl-after-finished,garbage-collector,namespace,resourcequota,"
            "persistentvolumeclaim-protection",
        ),
        jobs=8,
    ),
    "cluster": Part(
        data="scenarios-cluster",
        expected="expected-cluster.json.gz",
        flags=(
            *_RANGES,
            "--authorization-mode=Node,RBAC",
            "--enable-bootstrap-token-auth=true",
            "--controllers=*,bootstrap-signer-controller,token-cleaner-controller",
            "--node-monitor-period=1s",
            "--node-monitor-grace-period=10s",
            "--node-startup-grace-period=10s",
            "--node-eviction-rate=100",
            "--secondary-node-eviction-rate=100",
            "--allocate-node-cidrs=true",
            "--cluster-cidr=10.244.0.0/16,fd00:10:244::/48",
            "--pvclaimbinder-sync-period=2s",
            "--token-auth-file={work}/tokens.csv",
        ),
        tokens=f"{_ADMIN},admin,admin-uid,system:masters\n",
        token=_ADMIN,
        jobs=8,
    ),
    "crd": Part(data="wire/crd.json.gz", flags=(*_RANGES, *_NO_ACCOUNTS, "--controllers=namespace,garbage-collector")),
    "auth": Part(
        data="wire/auth.json.gz",
        flags=(
            *_RANGES,
            "--token-auth-file={work}/setup/tokens.csv",
            "--client-ca-file={work}/setup/client-ca.crt",
            "--requestheader-client-ca-file={work}/setup/front-proxy-ca.crt",
            "--requestheader-allowed-names=front-proxy-client",
            "--requestheader-username-headers=X-Remote-User",
            "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-uid-headers=X-Remote-Uid",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
            "--authorization-mode=Node,RBAC",
            "--enable-bootstrap-token-auth=true",
            "--enable-admission-plugins=NodeRestriction",
            "--controllers=namespace,clusterrole-aggregation,certificatesigningrequest-signing",
        ),
        writes_setup=True,
        token=_ADMIN,
    ),
    "admission": Part(
        data="wire/admission.json.gz",
        flags=(
            *_RANGES,
            "--allow-privileged=true",
            "--controllers=namespace,resourcequota,garbage-collector,validatingadmissionpolicy-status",
        ),
    ),
    "audit": Part(
        data="wire/audit.json.gz",
        flags=(
            *_RANGES,
            "--token-auth-file={work}/setup/tokens.csv",
            "--audit-policy-file={work}/setup/audit-policy.yaml",
            "--audit-log-path={work}/audit.log",
            "--allow-privileged=true",
            "--controllers=namespace,resourcequota,garbage-collector,validatingadmissionpolicy-status",
        ),
        options=("--audit-log", "{work}/audit.log"),
        writes_setup=True,
        token=_ADMIN,
    ),
    "mutations": Part(
        data="mutations.json.gz",
        flags=(
            "--service-cluster-ip-range=10.96.0.0/16",
            *_NO_ACCOUNTS,
            "--allow-privileged=true",
            "--api-only",
            "--token-auth-file={work}/tokens.csv",
        ),
        tokens=f"{_ADMIN},admin,admin,system:masters\n",
        token=_ADMIN,
        run=lambda comparison: _compare_mutations(comparison),
    ),
    "cases": Part(data="../cases", flags=_RANGES, run=lambda comparison: _compare_cases(comparison)),
}


class Server(NamedTuple):
    """A server that is ready for requests."""

    url: str
    token: str
    authority: Path
    process: subprocess.Popen[bytes]


def lacking(flags: Sequence[str]) -> list[str]:
    """Return the flags, each with its value, that are in a set-up and that `ctrlmgr serve` does not support."""
    serve = program.get_command(click.Context(program), "serve")
    assert serve is not None, "there is such a command"
    known = {option for parameter in serve.params for option in (*parameter.opts, *parameter.secondary_opts)}
    return [flag for flag in flags if flag.startswith("--") and flag.partition("=")[0] not in known]


@contextmanager
def serving(part: Part, database: str, work: Path) -> Iterator[Server]:
    """Run a server with the set-up of a part; raise RuntimeError with the server's output if the server does not become
    ready.
    """
    flags = [each.format(work=work) for each in part.flags]
    command = [sys.executable, "-m", "ctrlmgr", "serve", "--database", database, "--data-dir", str(work)]
    said = work / "serve.log"
    with said.open("w") as log, (work / "serve.out").open("w") as out:
        server = subprocess.Popen([*command, "--listen", "127.0.0.1:0", *flags], stdout=out, stderr=log)
    try:
        yield _ready(server, work, part.token) or _fail(said)
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait()


def write_tokens(part: Part, work: Path) -> None:
    """Write the token file of a part, if it has one."""
    if part.tokens:
        tokens = work / "tokens.csv"
        tokens.write_text(part.tokens)
        tokens.chmod(0o600)


def _fail(said: Path) -> Server:
    raise RuntimeError(f"the server did not become ready: {said.read_text()[-2000:]}")


def _ready(server: subprocess.Popen[bytes], work: Path, token: str) -> Server | None:
    """Wait until a server is ready; return None if the server exits, or needs more than a minute."""
    authority = work / "pki/ca.crt"
    for _ in range(600):
        if server.poll() is not None:
            return None
        try:
            config = yaml.safe_load((work / "kubeconfig").read_text())
            url = config["clusters"][0]["cluster"]["server"]
            urllib.request.urlopen(f"{url}/readyz", context=ssl.create_default_context(cafile=authority))
        except OSError:
            time.sleep(0.1)
            continue
        return Server(url, token or config["users"][0]["user"]["token"], authority, server)
    return None


class Comparison(NamedTuple):
    """A part of the recordings, its server, and the folder of the recordings."""

    part: Part
    recordings: Path
    server: Server
    work: Path
    database: str
    only: str

    @property
    def data(self) -> Path:
        """The path of the recordings of the part."""
        return self.recordings / self.part.data

    def compare(self) -> bool:
        """Compare the part, and return whether every response equals the recorded response."""
        run = self.part.run or (_compare_scenarios if self.part.expected else _compare_requests)
        return run(self)


def _where(comparison: Comparison) -> list[object]:
    server = comparison.server
    return ["--server", server.url, "--token", server.token, "--ca", server.authority, "--only", comparison.only]


def _compare_requests(comparison: Comparison) -> bool:
    ctrlmgr = f"{sys.executable} -m ctrlmgr"
    names = {"work": comparison.work, "database": f"'{comparison.database}'", "ctrlmgr": ctrlmgr}
    options = [each.format(**names) for each in comparison.part.options]
    return _run(comparison.recordings / "wire/run.py", *_where(comparison), *options, comparison.data)


def _compare_scenarios(comparison: Comparison) -> bool:
    part, recordings, work, only = comparison.part, comparison.recordings, comparison.work, comparison.only
    actual = work / "actual.json.gz"
    scale = os.environ.get("SETTLE_SCALE", "0.2")
    scenarios = sorted(comparison.data.glob("*.json.gz"))
    drive = ("--jobs", str(part.jobs), "--settle-scale", scale, "-o", actual)
    with (work / "drive.log").open("w") as log:
        if not _run(recordings / "drive.py", *_where(comparison), *drive, *scenarios, stderr=log):
            _say((work / "drive.log").read_text()[-2000:])
            return False
    summary = ["--summary"] if only == "." else []
    return _run(recordings / "compare.py", *summary, "--only", only, recordings / part.expected, actual)


def _compare_mutations(comparison: Comparison) -> bool:
    server = comparison.server
    where = ("--server", server.url, "--token", server.token, "--only", comparison.only)
    return _run(comparison.recordings / "mutations.py", *where, *comparison.part.options, comparison.data)


def _compare_cases(comparison: Comparison) -> bool:
    """Run the shell scripts of `cases`, which need kubectl, curl and jq."""
    names = [each.stem for each in sorted((comparison.data / "cases").glob("[0-9]*.sh"))]
    chosen = [name for name in names if re.search(comparison.only, name)]
    environment = {**os.environ, "KUBECONFIG": str(comparison.work / "kubeconfig"), "BUGS": str(comparison.work)}
    command = ["bash", str(comparison.data / "run.sh"), *chosen]
    return subprocess.run(command, check=False, env=environment).returncode == 0


def _run(script: Path, *arguments: object, stderr: IO[str] | None = None) -> bool:
    command = [sys.executable, str(script), *map(str, arguments)]
    return subprocess.run(command, check=False, stderr=stderr).returncode == 0


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def run(name: str, recordings: Path, database: str | None, only: str) -> bool:
    """Start a server for a part, and compare; print the flags of the set-up that the server does not support."""
    part = PARTS[name]
    absent = lacking(part.flags)
    kept = replace(part, flags=[flag for flag in part.flags if flag not in absent])
    _say(f"==> {name}")
    for flag in absent:
        _say(f"    without {flag}: ctrlmgr serve has no such flag")
    with tempfile.TemporaryDirectory() as directory:
        work = Path(directory)
        if part.writes_setup:
            _run(recordings / "wire/run.py", "--write-setup", work / "setup", recordings / part.data)
        write_tokens(part, work)
        where = database or f"sqlite:///{work}/ctrlmgr.db"
        with serving(kept, where, work) as server:
            return Comparison(kept, recordings, server, work, where, only).compare()


def compare_hashes(recordings: Path) -> bool:
    """Compare the recorded hash of each pod template with the hash that our code computes after defaulting."""
    cases = json.loads(gzip.decompress((recordings / "template-hashes.json.gz").read_bytes()))
    right = [recorded_hash(case["template"]) == case["hash"] for case in cases]
    _say(f"==> {HASHES}")
    sys.stdout.write(f"{sum(right)}/{len(right)} hashes\n")
    return all(right)


def main() -> int:
    """Run the comparison with the options of the command line."""
    parser = argparse.ArgumentParser(prog="scripts/conformance", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--database", metavar="URL", help="where the event log is; by default a SQLite file of its own")
    parser.add_argument("part", nargs="?", default="all", choices=["all", *PARTS, HASHES], help="by default all")
    parser.add_argument("only", nargs="?", default=".", metavar="REGEX", help="groups or scenarios, by name")
    given = parser.parse_args()
    re.compile(given.only)
    recordings = Path(os.environ.get("CONFORMANCE", "../shared/conformance"))
    if not (recordings / "wire/run.py").exists():
        parser.error(f"there are no recordings in {recordings}; CONFORMANCE=DIR names another directory")
    parts = [*PARTS, HASHES] if given.part == "all" else [given.part]
    try:
        results = [
            compare_hashes(recordings) if name == HASHES else run(name, recordings, given.database, given.only)
            for name in parts
        ]
    except RuntimeError as error:
        _say(f"error: {error}")
        return 2
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())

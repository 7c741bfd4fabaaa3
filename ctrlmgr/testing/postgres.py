"""A temporary PostgreSQL cluster for tests, fault tests and benchmarks.

Guarantees:
- Files outside of the cluster's temporary directory, and running servers, are not changed. The cluster listens on the
  loopback address and on a socket in its temporary directory, and requires a generated password.
- By default, the cluster is as durable as a production server (fsync, synchronous commits). Therefore data that
  survives a crash in a test would also survive it in production.
- If the tests run as root, the cluster runs as another user, because PostgreSQL refuses to run as root.
"""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import psycopg

from ctrlmgr.errors import CtrlmgrError

USER = "ctrlmgr"
_START_SECONDS = 60
_PORT_TRIES = 5
_END_TRIES = 1000
_END_PAUSE = 0.02


class PostgresMissing(CtrlmgrError):
    """PostgreSQL's server programs (initdb, pg_ctl, postgres) are not installed.

    `scripts/test` installs the programs. If PostgreSQL's programs are installed elsewhere, set
    CTRLMGR_TEST_POSTGRES_BIN to their directory.
    """


def find_program(name: str) -> Path:
    """Return the path of a PostgreSQL program; raises `PostgresMissing` if it is not installed.

    The program is searched in CTRLMGR_TEST_POSTGRES_BIN, in PATH, and in the directories of Debian's packages, newest
    version first.
    """
    packaged = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=_major_version, reverse=True)
    places = [os.environ.get("CTRLMGR_TEST_POSTGRES_BIN", ""), os.environ.get("PATH", ""), *map(str, packaged)]
    if found := shutil.which(name, path=os.pathsep.join(filter(None, places))):
        return Path(found)
    raise PostgresMissing(
        f"PostgreSQL's {name} was not found: run scripts/test, which installs it, or set CTRLMGR_TEST_POSTGRES_BIN "
        "to the directory with initdb, pg_ctl and postgres"
    )


def _major_version(directory: Path) -> int:
    return int(directory.parent.name) if directory.parent.name.isdigit() else 0


class PostgresCluster:
    """A PostgreSQL server with its data directory; a context manager that stops the server and removes the directory.

    Raises `PostgresMissing` if PostgreSQL is not installed, or `subprocess.CalledProcessError` with the server's output
    in its notes if the server cannot start.
    """

    def __init__(
        self,
        *,
        settings: Mapping[str, str] | None = None,
        address: str = "127.0.0.1",
        standby_of: PostgresCluster | None = None,
    ) -> None:
        """Create and start a cluster; `settings` contains lines for the cluster's postgresql.conf.

        The cluster listens on the IP address `address`. If `standby_of` is given, the new cluster is a standby of that
        cluster.
        """
        self.address = address
        self._settings = {} if settings is None else settings
        self._bin = find_program("initdb").resolve().parent
        self._root = Path(tempfile.mkdtemp(prefix="ctrlmgr-postgres-"))
        self._data = self._root / "data"
        self._password: str = standby_of._password if standby_of else secrets.token_hex(16)
        self._account = _server_account()
        try:
            self._create(standby_of)
            self._start_on_a_free_port()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> PostgresCluster:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _create(self, primary: PostgresCluster | None) -> None:
        password_file = self._root / "password"
        password_file.write_text(self._password)
        if self._account:
            for path in (self._root, password_file):
                os.chown(path, self._account.pw_uid, self._account.pw_gid)
        if primary is None:
            self._run(
                "initdb", "--pgdata", str(self._data), "--username", USER, "--pwfile", str(password_file),
                "--auth-local", "trust", "--auth-host", "scram-sha-256", "--encoding", "UTF8", "--no-locale",
                "--no-sync",
            )  # fmt: skip
        else:
            self._copy(primary)
        lines = {
            "listen_addresses": self.address,
            "unix_socket_directories": str(self._root),
            "max_connections": "200",
            **self._settings,
        }
        with (self._data / "postgresql.conf").open("a") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in lines.items())

    def _copy(self, primary: PostgresCluster) -> None:
        source = f"host={primary.address} port={primary.port} user={USER} password={self._password}"
        self._run(
            "pg_basebackup", "--pgdata", str(self._data), "--dbname", source, "--write-recovery-conf",
            "--checkpoint", "fast", "--wal-method", "stream", "--no-sync",
        )  # fmt: skip

    def let_in(self, *rules: str) -> None:
        """Add lines to pg_hba.conf, and reload the server's configuration."""
        with (self._data / "pg_hba.conf").open("a") as file:
            file.writelines(f"{rule}\n" for rule in rules)
        self._run("pg_ctl", "reload")

    def keep(self, file: Path) -> Path:
        """Copy a file to a path that only the server can read; return the path of the copy."""
        copy = Path(shutil.copy(file, self._root))
        copy.chmod(0o600)
        if self._account:
            os.chown(copy, self._account.pw_uid, self._account.pw_gid)
        return copy

    def follow(self, primary: PostgresCluster) -> None:
        """Become a standby of another cluster, which must have the same password.

        The standby starts with a new copy of the other cluster's data, and keeps its port.
        """
        self._end()
        shutil.rmtree(self._data)
        self._create(primary)
        self.start()

    def promote(self) -> None:
        """Promote this standby to a primary, and wait until it accepts writes."""
        self._run("pg_ctl", "promote", "-w", "-t", str(_START_SECONDS))

    def _start_on_a_free_port(self) -> None:
        for tries_left in reversed(range(_PORT_TRIES)):
            self.port = _free_port(self.address)
            try:
                self.start()
            except subprocess.CalledProcessError:  # Another process has bound the port before the server started.
                if not tries_left:
                    raise
            else:
                return

    def start(self) -> None:
        """Start the server and wait until it accepts connections."""
        log = str(self._root / "server.log")
        self._run("pg_ctl", "start", "-w", "-t", str(_START_SECONDS), "-l", log, "-o", f"-p {self.port}")

    def stop(self, mode: str = "fast") -> None:
        """Stop the PostgreSQL server.

        The mode is `smart`, `fast` or `immediate`. In the mode `immediate`, the server does not write its buffers to
        disk, as in a crash.
        """
        self._run("pg_ctl", "stop", "-w", "-m", mode)

    def restart(self, mode: str = "fast") -> None:
        """Stop the server and start it again on the same port."""
        self.stop(mode)
        self.start()

    def kill(self) -> None:
        """Kill the server's main process with SIGKILL, and wait until its other processes have ended too."""
        others = [pid for (pid,) in self.execute("SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid()")]
        first = self._first_process()
        os.kill(first, signal.SIGKILL)
        for pid in (first, *others):
            _await_end(pid)

    def _first_process(self) -> int:
        return int((self._data / "postmaster.pid").read_text().split("\n", 1)[0])

    def processes(self) -> list[int]:
        """Return the process ids of the server, beginning with the main process (on Linux only)."""
        first = self._first_process()
        return [first, *map(int, Path(f"/proc/{first}/task/{first}/children").read_text().split())]

    def freeze(self) -> None:
        """Suspend every process of the server.

        While the server is suspended, the host still accepts connections, but the server does not respond.
        """
        for pid in self.processes():  # The first process is suspended first, so that it starts no other processes.
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """Resume a suspended server."""
        for pid in reversed(self.processes()):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    def close(self) -> None:
        """Stop the server if it is running, and remove all its files."""
        try:
            self._end()
        finally:
            shutil.rmtree(self._root, ignore_errors=True)

    def _end(self) -> None:
        """Stop the server in any state."""
        if not (self._data / "postmaster.pid").exists():
            return
        with suppress(OSError):  # A server that was killed leaves its PID file.
            self.thaw()
        try:
            self.stop("immediate")
        except subprocess.CalledProcessError as error:
            notes = "".join(error.__notes__)
            if "Is server running?" not in notes and "No such process" not in notes:
                raise

    def url(self, database: str = "postgres", *, port: int | None = None) -> str:
        """Return the SQLAlchemy URL of a database.

        If `port` is given, it replaces the server's port in the URL, for connections through a proxy.
        """
        return f"postgresql+psycopg://{USER}:{self._password}@{self.address}:{port or self.port}/{database}"

    def execute(self, statement: str, database: str = "postgres") -> list[tuple[Any, ...]]:
        """Run one SQL statement as the superuser in its own transaction, and return its rows."""
        with psycopg.connect(
            host=str(self._root), port=self.port, user=USER, dbname=database, autocommit=True
        ) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    @contextmanager
    def database(self, name: str, *, template: str = "template1") -> Iterator[str]:
        """Create a database from a template, yield its URL, and drop it with all its connections."""
        self.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
        try:
            yield self.url(name)
        finally:
            self.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')

    def _run(self, program: str, *arguments: str) -> None:
        """Run a program of PostgreSQL as the server's user; an error contains the program's output in its notes."""
        environment = {**os.environ, "PGDATA": str(self._data), "LC_ALL": "C"}
        # A file is used instead of a pipe, because the server keeps its output open.
        with tempfile.TemporaryFile("w+") as output:
            try:
                subprocess.run(
                    [self._bin / program, *arguments],
                    check=True,
                    cwd=self._root,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    user=self._account.pw_uid if self._account else None,
                    group=self._account.pw_gid if self._account else None,
                    extra_groups=[] if self._account else None,
                )
            except subprocess.CalledProcessError as error:
                output.seek(0)
                error.add_note(output.read() + self._server_log())
                raise

    def _server_log(self) -> str:
        log = self._root / "server.log"
        return log.read_text(errors="replace")[-4000:] if log.exists() else ""


def _server_account() -> pwd.struct_passwd | None:
    """Return the account that runs the server, because PostgreSQL refuses to run as root.

    An account of None means the current account.
    """
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise PostgresMissing("PostgreSQL cannot run as root; create a user `postgres` or `nobody`")


def _await_end(pid: int) -> None:
    """Wait until a process that is not a child of this process has ended; raises TimeoutError if it does not end."""
    pause = threading.Event()
    for _ in range(_END_TRIES):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        pause.wait(_END_PAUSE)
    raise TimeoutError(f"process {pid} of the PostgreSQL cluster does not end")


def _free_port(address: str) -> int:
    with socket.socket() as probe:
        probe.bind((address, 0))
        port: int = probe.getsockname()[1]
        return port

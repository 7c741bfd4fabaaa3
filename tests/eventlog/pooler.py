"""A private PgBouncer in front of a temporary PostgreSQL, with the configuration in
examples/postgresql/pgbouncer.ini.
"""

from __future__ import annotations

import configparser
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from urllib.parse import urlsplit

from ctrlmgr.testing.postgres import PostgresCluster, PostgresMissing

EXAMPLE = Path(__file__).parents[2] / "examples" / "postgresql" / "pgbouncer.ini"
_DEADLINE = 30.0


def find_pgbouncer() -> str:
    """Return the path of pgbouncer; raises `PostgresMissing` if pgbouncer is not installed."""
    for program in (os.environ.get("CTRLMGR_TEST_PGBOUNCER"), "pgbouncer", "/usr/sbin/pgbouncer"):
        if program and (found := shutil.which(program)):
            return found
    raise PostgresMissing("pgbouncer was not found: run scripts/test, which installs it")


class PgBouncer:
    """A PgBouncer in transaction mode; it is a context manager.

    The method `url` converts a database URL of the cluster into a URL of PgBouncer.
    """

    def __init__(self, cluster: PostgresCluster, *, users: Mapping[str, str] | None = None, **settings: str) -> None:
        """Accept log-ins of the cluster's superuser and of `users` (names with passwords); `settings` are further lines
        of the configuration.
        """
        program = find_pgbouncer()
        self._folder = Path(tempfile.mkdtemp(prefix="ctrlmgr-pgbouncer-"))
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        config = configparser.ConfigParser(interpolation=None)
        config.read_string(EXAMPLE.read_text())
        config["databases"] = {"*": f"host=127.0.0.1 port={cluster.port}"}
        account = urlsplit(cluster.url())
        everybody = {str(account.username): str(account.password), **(users or {})}
        passwords = self._folder / "userlist.txt"
        passwords.write_text("".join(f'"{name}" "{password}"\n' for name, password in everybody.items()))
        config["pgbouncer"].update(
            listen_port=str(self.port),
            auth_file=str(passwords),
            unix_socket_dir="",
            logfile=str(self._folder / "log"),
            **settings,
        )
        with (self._folder / "pgbouncer.ini").open("w") as file:
            config.write(file)
        owner = _account()
        if owner is not None:
            for path in (self._folder, *self._folder.iterdir()):
                os.chown(path, owner.pw_uid, owner.pw_gid)
        identity = ["--user", owner.pw_name] if owner else []
        self._process = subprocess.Popen([program, "--quiet", *identity, str(self._folder / "pgbouncer.ini")])
        self._await_start()

    def _await_start(self) -> None:
        deadline = time.monotonic() + _DEADLINE
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
            except ConnectionRefusedError:
                assert self._process.poll() is None, (self._folder / "log").read_text()
                assert time.monotonic() < deadline, "pgbouncer does not listen"
                time.sleep(0.02)
            else:
                return

    def __enter__(self) -> PgBouncer:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._process.kill()
        self._process.wait()
        shutil.rmtree(self._folder)

    def url(self, url: str) -> str:
        """Return the URL of this database through PgBouncer."""
        parts = urlsplit(url)
        account = parts.netloc.rpartition("@")[0]
        return parts._replace(netloc=f"{account}@127.0.0.1:{self.port}").geturl()


def _account() -> pwd.struct_passwd | None:
    """Return the user that runs PgBouncer, which refuses to run as root; None means the current user."""
    return pwd.getpwnam("nobody") if os.geteuid() == 0 else None

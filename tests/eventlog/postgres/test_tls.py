"""Tests of TLS connections to PostgreSQL: a real server has a certificate for `db.example`."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from ctrlmgr.clock import SystemClock
from ctrlmgr.errors import LogUnavailable
from ctrlmgr.eventlog import migrate_log
from ctrlmgr.eventlog.postgres.postgres_log import PostgresEventLog
from ctrlmgr.http.tls import ensure_certificates
from ctrlmgr.testing.eventlog_contract import AUTHOR, add, thing
from ctrlmgr.testing.postgres import PostgresCluster

pytestmark = [pytest.mark.postgres, pytest.mark.slow, pytest.mark.timeout(400)]

NAME = "db.example"


class TlsPostgres(NamedTuple):
    """A PostgreSQL server, the authority that signed its certificate, and another authority."""

    cluster: PostgresCluster
    authority: Path
    other: Path

    def url(self, host: str, query: str) -> str:
        """Return the URL of the log with another host name of the server."""
        account = self.cluster.url("log").rpartition("@")[0]
        return f"{account}@{host}:{self.cluster.port}/log?hostaddr=127.0.0.1&{query}"


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TlsPostgres]:
    ours, others = (
        ensure_certificates(tmp_path_factory.mktemp(name), [NAME], clock=SystemClock()) for name in ("ours", "others")
    )
    with PostgresCluster() as cluster:
        for setting, file in (("ssl_cert_file", ours.serving), ("ssl_key_file", ours.serving_key)):
            cluster.execute(f"ALTER SYSTEM SET {setting} = '{cluster.keep(file)}'")
        cluster.execute("ALTER SYSTEM SET ssl = on")
        cluster.execute("CREATE DATABASE log")
        cluster.restart()
        migrate_log(cluster.url("log"), clock=SystemClock(), random=random.Random(1))
        yield TlsPostgres(cluster, ours.authority, others.authority)


def opened(url: str) -> PostgresEventLog:
    return PostgresEventLog(url, clock=SystemClock(), random=random.Random(2), patience=0.2)


def test_another_host_with_a_valid_certificate_is_connected(secured: TlsPostgres) -> None:
    log = opened(secured.url(NAME, f"sslrootcert={secured.authority}"))
    assert log.append([add(thing("a"))], author=AUTHOR)
    in_use = secured.cluster.execute(
        "SELECT DISTINCT s.ssl FROM pg_stat_ssl s JOIN pg_stat_activity a USING (pid)"
        " WHERE a.application_name LIKE 'ctrlmgr%'"
    )
    assert in_use == [(True,)]
    log.close()


@pytest.mark.parametrize(
    ("host", "wrong_authority", "problem"),
    [
        (NAME, True, "certificate verify failed"),
        ("elsewhere.example", False, 'does not match host name "elsewhere.example"'),
    ],
)
def test_another_host_with_an_invalid_certificate_is_refused(
    secured: TlsPostgres, host: str, wrong_authority: bool, problem: str
) -> None:
    authority = secured.other if wrong_authority else secured.authority
    with pytest.raises(LogUnavailable, match=problem):
        opened(secured.url(host, f"sslrootcert={authority}"))


def test_a_server_certificate_needs_a_known_authority_unless_sslmode_is_require(
    secured: TlsPostgres, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(LogUnavailable, match="certificate"):
        opened(secured.url(NAME, ""))
    log = opened(secured.url(NAME, "sslmode=require"))
    assert log.head()
    log.close()

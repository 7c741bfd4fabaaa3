from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from ctrlmgr.clock import SystemClock
from ctrlmgr.errors import SettingsError
from ctrlmgr.eventlog import migrate_log, open_log
from ctrlmgr.eventlog.postgres.url import Place, parse_url
from ctrlmgr.inspection.database import open_database
from ctrlmgr.testing.postgres import PostgresCluster


@pytest.fixture(autouse=True)
def no_wishes_of_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("PGHOST", "PGPORT", "PGSSLMODE", "PGSSLROOTCERT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.mark.parametrize(
    ("url", "places"),
    [
        ("postgresql://me:secret@db/log", [("db", 5432)]),
        ("postgres://db:6432/log", [("db", 6432)]),
        ("postgresql+psycopg://me@10.0.0.1:1/log?sslmode=require", [("10.0.0.1", 1)]),
        ("postgresql:///log", [("", 5432)]),
        ("postgresql://me@/log?host=/run/postgresql&port=5433", [("/run/postgresql", 5433)]),
        ("postgresql://me:secret@a:5432,b:5433/log", [("a", 5432), ("b", 5433)]),
        ("postgresql://a,b/log?target_session_attrs=read-write", [("a", 5432), ("b", 5432)]),
        ("postgresql://me@/log?host=a:1&host=b:2", [("a", 1), ("b", 2)]),
        ("postgresql://me@/log?host=a&host=b&port=1&port=2", [("a", 1), ("b", 2)]),
        ("postgresql://me@/log?host=a,b&port=1,2", [("a", 1), ("b", 2)]),
        ("postgresql://me@/log?host=a,b&port=7", [("a", 7), ("b", 7)]),
        ("postgresql://me@[::1]:1,[fd00::2]/log", [("::1", 1), ("fd00::2", 5432)]),
        ("postgresql://me@/log?host=::1&port=3", [("::1", 3)]),
    ],
)
def test_servers_are_named_in_all_usual_forms(url: str, places: list[tuple[str, int]]) -> None:
    target = parse_url(url)
    assert list(target.places) == [Place(*place) for place in places]
    assert target.url.database == "log"
    assert target.url.host is None
    assert not {"host", "port", "target_session_attrs"} & target.url.query.keys()


def test_the_account_of_the_url_is_kept() -> None:
    url = parse_url("postgresql://me%40home:p%2Fw@a,b/log").url
    assert (url.username, url.password, url.drivername) == ("me@home", "p/w", "postgresql+psycopg")


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("postgresql://a:x/log", "'x' is not a port"),
        ("postgresql://a:0/log", "'0' is not a port"),
        ("postgresql:///log?host=a,b,c&port=1,2", "3 hosts but 2 ports"),
        ("postgresql://a,b/log?hostaddr=127.0.0.1", "hostaddr needs a single host"),
    ],
)
def test_an_invalid_url_is_refused_with_its_reason(url: str, problem: str) -> None:
    with pytest.raises(SettingsError, match=problem):
        parse_url(url)


@pytest.mark.parametrize(
    ("attributes", "wanted"),
    [("", True), ("read-write", True), ("primary", True), ("any", False), ("prefer-standby", False)],
)
def test_a_standby_is_read_only_if_configured(attributes: str, wanted: bool) -> None:
    assert parse_url(f"postgresql://a/log?target_session_attrs={attributes}").wants_primary is wanted


def security(url: str) -> tuple[object, object]:
    target = parse_url(url)
    parameters = target.parameters(target.places[0], {})
    return parameters.get("sslmode"), parameters.get("sslrootcert")


@pytest.mark.parametrize("host", ["", "localhost", "127.0.0.1", "127.1.2.3", "[::1]", "%2Frun"])
def test_local_connections_use_libpqs_defaults(host: str) -> None:
    assert security(f"postgresql://{host}/log".replace("%2Frun/log", "/log?host=/run")) == (None, None)


def test_a_server_on_another_host_must_present_a_valid_certificate(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("psycopg.pq.version", lambda: 15_00_10)
    assert security("postgresql://db/log") == ("verify-full", None)
    monkeypatch.setattr("psycopg.pq.version", lambda: 16_00_00)
    assert security("postgresql://db/log") == ("verify-full", "system")
    assert security("postgresql://10.0.0.1/log?sslrootcert=/ca") == ("verify-full", "/ca")
    (tmp_path / ".postgresql").mkdir()
    (tmp_path / ".postgresql" / "root.crt").touch()
    assert security("postgresql://db/log") == ("verify-full", None)
    monkeypatch.setenv("PGHOST", "db")
    assert security("postgresql:///log") == ("verify-full", None)


def test_explicit_values_override_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    assert security("postgresql://db/log?sslmode=require") == ("require", None)
    monkeypatch.setenv("PGSSLMODE", "disable")
    assert security("postgresql://db/log") == (None, None)


@pytest.mark.parametrize(
    ("url", "unverified"),
    [
        ("postgresql://db,127.0.0.1/log", []),
        ("postgresql://db,127.0.0.1/log?sslmode=require", ["db:5432"]),
        ("postgresql://db/log?sslmode=verify-ca", ["db:5432"]),
        ("postgresql://db/log?sslmode=verify-full", []),
        ("postgresql:///log?host=/run&sslmode=disable", []),
    ],
)
def test_a_client_without_a_certificate_is_anonymous(url: str, unverified: list[str]) -> None:
    assert [str(place) for place in parse_url(url).unverified()] == unverified


def test_the_url_overrides_the_defaults() -> None:
    target = parse_url("postgresql://a/log?connect_timeout=9&application_name=mine")
    parameters = target.parameters(target.places[0], {"connect_timeout": 2, "tcp_user_timeout": 1})
    assert (parameters["connect_timeout"], parameters["application_name"]) == ("9", "mine")
    assert (parameters["tcp_user_timeout"], parameters["keepalives_idle"]) == (1, 5)


@pytest.mark.postgres
def test_a_database_with_an_unsuitable_encoding_is_refused(cluster: PostgresCluster) -> None:
    cluster.execute("CREATE DATABASE ascii ENCODING 'SQL_ASCII' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'")
    try:
        url = cluster.url("ascii")
        with pytest.raises(SettingsError, match="the database ascii has the encoding SQL_ASCII"):
            migrate_log(url, clock=SystemClock(), random=Random(1))
        with pytest.raises(SettingsError, match="ENCODING 'UTF8'"):
            open_log(url, clock=SystemClock(), random=Random(1))
        with pytest.raises(SettingsError, match="SQL_ASCII"), open_database(url):
            pass
    finally:
        cluster.execute("DROP DATABASE ascii WITH (FORCE)")

"""Tests that no file of PostgreSQL contains a value of an encrypted object: tables, indexes and the WAL."""

from __future__ import annotations

import random
from base64 import b64encode
from pathlib import Path

import psycopg
import pytest

from ctrlmgr.api.object import Object
from ctrlmgr.encryption.key_providers import read_providers
from ctrlmgr.eventlog import Author, EventType, Proposal, open_log
from ctrlmgr.testing import FakeClock

AUTHOR = Author("tester")


def configuration(folder: Path) -> Path:
    """Write an EncryptionConfiguration that encrypts Secrets and a custom kind."""
    file = folder / "keys.yaml"
    file.write_text(
        "kind: EncryptionConfiguration\napiVersion: apiserver.config.k8s.io/v1\nresources:\n"
        "- resources: [secrets, widgets.example.com]\n  providers:\n"
        f"  - aesgcm: {{keys: [{{name: key1, secret: {b64encode(bytes(32)).decode()}}}]}}\n",
        encoding="utf-8",
    )
    return file


def versioned(kind: str, value: str) -> Object:
    version = "example.com/v1" if kind == "Widget" else "v1"
    metadata = f'{{"name":"a","namespace":"shop","uid":"u-{kind}"}}'
    text = f'{{"kind":"{kind}","apiVersion":"{version}","metadata":{metadata},"data":{{"value":"{value}"}}}}'
    return Object.from_wire(text.encode())


def files_with(directory: Path, value: str) -> list[Path]:
    """Return the files in a directory that contain a value."""
    return [file for file in directory.rglob("*") if file.is_file() and value.encode() in file.read_bytes()]


@pytest.mark.postgres
def test_no_file_of_the_database_server_contains_a_value(postgres_url: str, tmp_path: Path) -> None:
    chance = random.Random(1)
    providers = read_providers(configuration(tmp_path))
    log = open_log(postgres_url, clock=FakeClock(), random=chance, migrate=True, providers=providers)
    values: dict[str, list[str]] = {}
    for kind in ("Secret", "Widget", "ConfigMap"):
        values[kind] = [chance.randbytes(size).hex() for size in (32, 5000, 32)]
        revision = 0
        for kind_of_change, value in zip(EventType, values[kind], strict=True):
            proposal = Proposal(kind_of_change, versioned(kind, value), revision)
            revision = log.append([proposal], author=AUTHOR)[0].revision
    log.close()
    with psycopg.connect(postgres_url.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute("CHECKPOINT")
        row = connection.execute("SHOW data_directory").fetchone()
    assert row is not None
    directory = Path(row[0])
    assert all(files_with(directory, value[:64]) for value in values["ConfigMap"]), "the search finds what is plain"
    assert [files_with(directory, value[:64]) for kind in ("Secret", "Widget") for value in values[kind]] == [[]] * 6

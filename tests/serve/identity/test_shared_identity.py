"""Tests of shared identity files: they are created once, never rewritten, and refused if other users can read them."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from ctrlmgr.errors import SettingsError
from ctrlmgr.serve.front import public_host
from ctrlmgr.serve.identity.shared_identity import is_complete, making, shared_token


def token(folder: Path) -> str:
    return shared_token(folder, random.Random(1))


def test_a_token_is_created_once(tmp_path: Path) -> None:
    made = token(tmp_path)
    assert shared_token(tmp_path, random.Random(2)) == made
    assert (tmp_path / "admin.token").stat().st_mode & 0o777 == 0o600


def test_a_token_readable_by_others_is_refused(tmp_path: Path) -> None:
    token(tmp_path)
    (tmp_path / "admin.token").chmod(0o644)
    with pytest.raises(SettingsError, match="other users can read"):
        token(tmp_path)


@pytest.mark.parametrize("content", ["", "two words\n"])
def test_an_invalid_token_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "admin.token").write_text(content)
    (tmp_path / "admin.token").chmod(0o600)
    with pytest.raises(SettingsError, match="contains no token"):
        token(tmp_path)


def test_an_unwritable_directory_is_accepted_if_it_is_complete(tmp_path: Path) -> None:
    folder = tmp_path / "identity"
    folder.mkdir()
    (folder / ".lock").mkdir()  # this has the effect of a read-only file system: the file cannot be opened for writing
    with pytest.raises(SettingsError, match="cannot be written"), making(folder):
        pass
    for name in ("ca.crt", "ca.key", "sa.key", "admin.token"):
        (folder / name).touch()
    assert is_complete(folder)
    with making(folder):
        pass


@pytest.mark.parametrize("url", ["k8s.example.com", "http://k8s.example.com", "https://", "https://[::1"])
def test_an_unreachable_advertised_url_is_refused(url: str) -> None:
    with pytest.raises(SettingsError, match="is not a URL"):
        public_host(url)


def test_the_host_of_a_url_is_a_name_in_the_certificate() -> None:
    assert public_host("https://k8s.example.com:6443/") == "k8s.example.com"

"""Tests of the built package: the wheel contains all settings and pages, and metadata about its origin."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from email.message import Message
from email.parser import Parser
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[zipfile.ZipFile]:
    folder = tmp_path_factory.mktemp("wheel")
    build = f"import hatchling.build; hatchling.build.build_wheel({str(folder)!r})"
    subprocess.run([sys.executable, "-c", build], cwd=ROOT, check=True, capture_output=True, timeout=100)
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as opened:
        yield opened


@pytest.fixture(scope="module")
def metadata(wheel: zipfile.ZipFile) -> Message:
    name = next(each for each in wheel.namelist() if each.endswith(".dist-info/METADATA"))
    return Parser().parsestr(wheel.read(name).decode())


@pytest.fixture(scope="module")
def hook() -> ModuleType:
    specification = importlib.util.spec_from_file_location("metadata_hook", ROOT / "scripts" / "metadata.py")
    assert specification
    assert specification.loader
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def test_the_wheel_contains_the_settings_the_schema_and_every_page(wheel: zipfile.ZipFile) -> None:
    carried = set(wheel.namelist())
    assert wheel.read("ctrlmgr/settings.toml") == (ROOT / "settings.toml").read_bytes()
    pages = {f"ctrlmgr/{page.relative_to(ROOT)}" for page in (ROOT / "docs").rglob("*.md")}
    assert pages | {"ctrlmgr/migrations/env.py"} <= carried


def test_every_page_linked_from_the_packaged_readme_is_packaged(metadata: Message, wheel: zipfile.ZipFile) -> None:
    text = str(metadata.get_payload())
    targets = re.findall(r"\]\((?!#)([^)]+)\)", text)
    assert all(target.startswith("https://") for target in targets)
    named = set(re.findall(r"\bdocs/[\w/-]+\.md", text))
    assert len(named) > 20
    assert {f"ctrlmgr/{page}" for page in named} <= set(wheel.namelist())


def test_the_metadata_have_urls_and_keywords(metadata: Message) -> None:
    assert metadata.get_all("Project-URL")
    assert {"kubernetes", "operator", "testing"} <= set(str(metadata["Keywords"]).split(","))


@pytest.mark.parametrize(
    ("origin", "source"),
    [
        ("https://example.com/a/ctrlmgr.git", "https://example.com/a/ctrlmgr"),
        ("https://token@example.com/a/ctrlmgr", "https://example.com/a/ctrlmgr"),
        ("git@example.com:a/ctrlmgr.git", "https://example.com/a/ctrlmgr"),
        ("ssh://git@example.com/a/ctrlmgr.git", "https://example.com/a/ctrlmgr"),
        ("/srv/ctrlmgr.git", ""),
        ("", ""),
    ],
)
def test_urls_are_derived_from_the_checkouts_remote(hook: ModuleType, tmp_path: Path, origin: str, source: str) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    if origin:
        subprocess.run(["git", "-C", str(tmp_path), "remote", "add", "origin", origin], check=True)
    assert hook.origin(tmp_path) == source
    assert hook.urls(source).get("Homepage", "") == source


def test_links_of_the_readme_lead_to_the_source_if_it_is_known(hook: ModuleType) -> None:
    text = "# a\n\n[docs/api.md](docs/api.md), [b](https://b.example)\n\n![picture](docs/p.png)\n\nend\n"
    found = hook.readme(text, "https://example.com/a")
    assert "[docs/api.md](https://example.com/a/blob/main/docs/api.md), [b](https://b.example)" in found
    assert "\ndocs/api.md, [b](https://b.example)\n\nend" in hook.readme(text, "")

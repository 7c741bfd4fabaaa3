"""Tests of container files: the files that they copy exist, and the options of the commands that they run exist."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

import click
import pytest

from ctrlmgr import cli

ROOT = Path(__file__).parents[2]
INSTRUCTIONS = {"ARG", "COPY", "ENTRYPOINT", "EXPOSE", "FROM", "RUN", "STOPSIGNAL", "USER", "VOLUME"}


class Image(NamedTuple):
    """A container file, and the folder from which its image is built."""

    folder: Path
    text: str

    @property
    def instructions(self) -> list[tuple[str, str]]:
        """Return the instructions of the file in order, as (instruction, arguments)."""
        lines = re.sub(r"\\\n\s*", "", re.sub(r"^#.*\n", "", self.text, flags=re.MULTILINE)).splitlines()
        return [(word, rest) for word, _, rest in (line.partition(" ") for line in lines if line)]

    def all(self, instruction: str) -> list[str]:
        """Return the arguments of each instruction of the type `instruction`."""
        return [rest for word, rest in self.instructions if word == instruction]

    def is_ignored(self, path: str) -> bool:
        """Return whether `.dockerignore` excludes a file or folder at the top level; the last matching rule decides."""
        rules = (self.folder / ".dockerignore").read_text().splitlines()
        fitting = [rule for rule in rules if fnmatch(path, rule.lstrip("!")) and not rule.startswith("#")]
        return bool(fitting) and not fitting[-1].startswith("!")


def of_the_example(tmp_path: Path) -> Image:
    return Image(ROOT, (ROOT / "examples" / "container" / "Containerfile").read_text())


def of_a_new_project(tmp_path: Path) -> Image:
    folder = tmp_path / "corner-shop"
    assert cli.run(["new", "corner-shop", "--deploy", "--directory", str(folder)]) == 0
    text = (folder / "Dockerfile").read_text()
    assert "pip wheel --wheel-dir wheels ." in text
    (folder / "wheels").mkdir()  # as that command does
    return Image(folder, text)


@pytest.fixture(params=[of_the_example, of_a_new_project], ids=["example", "project"])
def image(request: pytest.FixtureRequest, tmp_path: Path) -> Image:
    found: Image = request.param(tmp_path)
    return found


def test_instructions_are_known_and_the_first_is_the_base_image(image: Image) -> None:
    words = [word for word, _ in image.instructions]
    assert set(words) <= INSTRUCTIONS
    assert next(word for word in words if word != "ARG") == "FROM"
    arguments = dict(each.split("=", 1) for each in image.all("ARG"))
    (base,) = image.all("FROM")
    assert re.search(r":3\.1[1-9]", re.sub(r"\$\{(\w+)\}", lambda found: arguments[found[1]], base))


def test_copied_files_exist_and_are_not_ignored(image: Image) -> None:
    for copied in image.all("COPY"):
        *sources, _ = copied.split()
        for source in sources:
            assert (image.folder / source).exists(), copied
            assert source == "." or not image.is_ignored(source), copied


def test_the_example_copies_all_sources_of_its_wheel() -> None:
    image = of_the_example(ROOT)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wheel, hook = (project["tool"]["hatch"][part] for part in ("build", "metadata"))
    files = wheel["targets"]["wheel"]
    parts = {
        "pyproject.toml",
        "README.md",
        hook["hooks"]["custom"]["path"],
        *files["packages"],
        *files["force-include"],
    }
    assert {part for part in parts if image.is_ignored(part.split("/")[0])} == set()
    assert image.is_ignored(".git")


def commands(image: Image) -> Iterator[list[str]]:
    for run in image.all("RUN"):
        yield from (shlex.split(command) for command in run.split("&&"))


def help_of(words: list[str]) -> str:
    """Return the help text of a command; if the command's program is not installed, the test accepts every option."""
    program = [sys.executable, "-m", "pip", words[1]] if words[0] == "pip" else [words[0]]
    if not shutil.which(program[0]):
        return " ".join(words)
    return subprocess.run([*program, "--help"], capture_output=True, text=True, check=True).stdout


def test_the_options_of_each_command_exist(image: Image) -> None:
    for words in commands(image):
        options = [word for word in words if word.startswith("-")]
        known = help_of(words)
        assert [option for option in options if not re.search(rf"{option}\b", known)] == [], words


def test_installed_files_were_copied(image: Image) -> None:
    copied: dict[str, str] = {}
    for each in image.all("COPY"):
        *sources, target = each.split()
        copied |= {(target + source if target.endswith("/") else target).rstrip("/"): source for source in sources}
    for words in commands(image):
        if words[0] == "pip":
            paths = [word for word in words if word.startswith("/")]
            assert paths, words
            assert set(paths) <= set(copied), words


def test_the_image_starts_a_command_of_the_project(image: Image) -> None:
    (entry,) = image.all("ENTRYPOINT")
    program, name, *options = json.loads(entry)
    command = cli.ctrlmgr.get_command(click.Context(cli.ctrlmgr), name)
    assert program == "ctrlmgr"
    assert command is not None
    arguments = ["corner_shop:app"] if name == "run" else []
    assert command.make_context(name, [*options, *arguments]).params["flag_log_format"] == "json"


def test_the_page_describes_the_kubeconfig_and_the_port_of_the_container() -> None:
    page = (ROOT / "docs" / "high-availability.md").read_text()
    (entry,) = of_the_example(ROOT).all("ENTRYPOINT")
    _, name, *options = json.loads(entry)
    command = cli.ctrlmgr.get_command(click.Context(cli.ctrlmgr), name)
    assert command is not None
    (more,) = re.findall(r"^docker run .*\\\n  ctrlmgr (.*)$", page, re.MULTILINE)
    given = command.make_context(name, [*options, *more.split()]).params
    assert given["flag_server_public_url"].startswith("https://localhost:")
    assert f"docker cp ctrlmgr:{given['flag_data_dir']}/kubeconfig kubeconfig" in page

"""Tests that the documentation is correct: it contains all commands, options, settings and dependencies, and its
examples run.

`project/page_player.py` describes how the commands of a page run; here they run in a directory with the project's
recordings.
"""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import click
import pytest

from ctrlmgr import cli
from tests import generated
from tests.e2e.kubectl import find_kubectl
from tests.project.page_player import check_page, commands, looks_like, titled, uses_kubectl
from tests.project.shell import put_programs

ROOT = Path(__file__).parents[1]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
PLAYED = [page for page in PAGES if commands(page) and page.parent.name != "tutorials"]
"""The pages whose commands run here; `project/test_first_hour.py` runs the tutorials, with an installed ctrlmgr."""
SHARED = "Options of every command that uses settings or a log"


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def section(text: str, title: str) -> str:
    """Return the text under a heading of the second level."""
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert found, f"there is no section {title!r}"
    return found[1]


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_command_and_option_is_in_cli_md(name: str) -> None:
    page = read("docs/cli.md")
    documented = section(page, f"ctrlmgr {name}") + section(page, SHARED) + read("docs/kubernetes-flags.md")
    command = cli.ctrlmgr.get_command(click.Context(cli.ctrlmgr), name)
    assert command is not None
    options = [option for parameter in command.params for option in parameter.opts if option.startswith("-")]
    missing = [option for option in options if f"`{option}`" not in documented and f"`{option} " not in documented]
    assert not missing


def test_cli_md_documents_no_removed_command() -> None:
    assert set(re.findall(r"^## ctrlmgr ([\w-]+)$", read("docs/cli.md"), re.MULTILINE)) == set(cli.COMMANDS)


def test_every_exit_code_is_in_cli_md() -> None:
    assert re.findall(r"^\| (\d+) \|", read("docs/cli.md"), re.MULTILINE) == [str(int(code)) for code in cli.ExitCode]


@pytest.mark.parametrize(("path", "content"), [*generated.files()], ids=lambda value: getattr(value, "name", ""))
def test_generated_files_are_up_to_date(path: Path, content: str) -> None:
    assert path.read_text(encoding="utf-8") == content, "run scripts/generate"


def test_every_dependency_has_a_reason() -> None:
    project = tomllib.loads(read("pyproject.toml"))
    entries = itertools.chain(project["project"]["dependencies"], *project["dependency-groups"].values())
    wanted = {re.split(r"[^\w-]", entry)[0] for entry in entries}
    listed = {
        name.strip()
        for row in re.findall(r"^\| ([a-z][\w, -]*) \|", read("docs/dependencies.md"), re.MULTILINE)
        for name in row.split(",")
    }
    assert listed - {"package"} == wanted


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_has_a_target(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for target, anchor in re.findall(r"\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)", text):
        file = page.parent / target if target else page
        assert file.exists(), target
        headings = re.findall(r"^#+ (.*)$", file.read_text(encoding="utf-8"), re.MULTILINE) if anchor else []
        assert not anchor or anchor in [
            re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings
        ]


@pytest.fixture
def workplace(tmp_path: Path) -> tuple[Path, dict[str, str]]:
    """Return an empty directory with the recordings, and environment variables with which `ctrlmgr` and `python` are
    those of this project.
    """
    programs, folder = tmp_path / "bin", tmp_path / "work"
    (folder / "tests").mkdir(parents=True)
    programs.mkdir()
    (folder / "tests" / "recordings").symlink_to(ROOT / "tests" / "recordings")
    python = f'exec "{sys.executable}"'
    put_programs(programs, {"python": f'{python} "$@"', "ctrlmgr": f'{python} -m ctrlmgr "$@"'})
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("CTRLMGR_")}
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    return folder, {**inherited, "PATH": path, "PYTHONPATH": str(ROOT), "HOME": str(tmp_path / "home")}


@pytest.mark.timeout(240)
@pytest.mark.parametrize("page", PLAYED, ids=lambda page: page.name)
def test_the_commands_of_a_page_run(page: Path, workplace: tuple[Path, dict[str, str]]) -> None:
    folder, environment = workplace
    if uses_kubectl(page):
        put_programs(folder.parent / "bin", {"kubectl": f'exec "{find_kubectl()}" "$@"'})
    check_page(page, folder, environment, is_compared=page.name != "README.md")  # another test checks this page


@pytest.mark.parametrize(
    ("shown", "output", "fits"),
    [
        ("a\n", "a\n", True),
        ("a\n", "b\n", False),
        ("a\n", "a\nb\n", False),
        ("a…c\n", "a b c\n", True),
        ("a…c\n", "a\nc\n", False),
        ("…\nb\n…\n", "a\nb\n", True),
        ("…\nb\n…\n", "a\nc\n", False),
        ("(a)\n", "(a)  \n", True),
    ],
)
def test_an_output_is_compared_with_the_page(shown: str, output: str, fits: bool) -> None:
    assert (looks_like(shown).fullmatch(output) is not None) is fits


def test_the_first_screen_of_the_readme_shows_a_replay_and_the_source_of_kubectl() -> None:
    first = read("README.md").splitlines()[:45]
    assert "[kubectl](https://kubernetes.io/docs/tasks/tools/)" in "".join(first).partition("kubectl create")[0]
    assert any("ctrlmgr replay" in line for line in first)
    assert {"scripts/serve --nodes 3", "scripts/test"} <= {line.strip().split("  ")[0] for line in first}


def test_the_readmes_replay_prints_the_shown_output(workplace: tuple[Path, dict[str, str]]) -> None:
    folder, environment = workplace
    block = re.search(
        r"^```console\n\$ (ctrlmgr replay [^\n]*)\n(.*?)^```", read("README.md"), re.MULTILINE | re.DOTALL
    )
    assert block
    finished = subprocess.run(
        block[1], shell=True, cwd=folder, env=environment, capture_output=True, text=True, check=True, timeout=60
    )
    assert stable(finished.stdout) == stable(block[2])


def stable(text: str) -> list[str]:
    """Return the lines of a text without values that depend on the machine, such as times and rates."""
    return [re.sub(r"[\d.,]+ s\b|[\d,]+/s\b", "…", line) for line in text.splitlines()]


FILE = re.compile(r"(?<![\w./:…@-])[\w.-]+(?:/[\w.-]+)*\.(?:py|sh|sql|jsonl|gz|json|ya?ml|toml|ini|csv|conf|db)\b")
READERS = {
    "tracing.yaml",
    "app.py",
    "db1.example",
    "db2.example",
    "incident.jsonl.gz",
    "jobs.jsonl.gz",
    "keys.yaml",
    "kms-keys.json",
    "policy.yaml",
    "prod.yaml",
    "rules.py",
    "crds.yaml",
    "rbac.yaml",
    "scenario.yaml",
    "plan.yaml",
    "ctrlmgr.db",
    "shop.py",
}
"""Files that the reader of a page is assumed to have, and that no page creates."""


def shown(page: Path) -> list[str]:
    """Return the commands of a page that tests do not run: commands in shell blocks, indented commands and commands
    within sentences.
    """
    text = page.read_text(encoding="utf-8")
    blocks = "".join(re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL)).replace("\\\n", " ")
    indented = re.findall(
        r"^    (?:\$ )?((?:\.venv/bin/|scripts/|ctrlmgr |python |kubectl |psql ).*)", text, re.MULTILINE
    )
    within = re.findall(r"`((?:\.venv/bin/|scripts/|ctrlmgr |python -m |sqlite3 |psql )[^`]*)`", text)
    return [line.split(" #")[0].replace("$OLDPWD/", "/") for line in (*blocks.splitlines(), *indented, *within)]


@pytest.mark.parametrize("page", [page for page in PAGES if shown(page)], ids=lambda page: page.name)
def test_files_named_in_commands_exist(page: Path) -> None:
    made: set[str] = {*titled(page)}
    for command in (*commands(page), *shown(page)):
        made |= set(re.findall(r"(?:>+|-o|-out|--output|sqlite:///|backup) ?([\w./-]+)", command))
        for name in re.findall(r"(?<![\w/.])(?:scripts|examples|docs|tests|bench|migrations)/[\w./-]*\w", command):
            assert (ROOT / name).exists(), command
        for module in re.findall(r"python -m ((?:tests|bench|examples)[\w.]*)", command):
            file = ROOT / module.replace(".", "/")
            assert file.with_suffix(".py").exists() or (file / "__main__.py").exists(), command
        for program in re.findall(r"\.venv/bin/([\w-]+)", command):
            assert program in ("ctrlmgr", "activate"), command
        unknown = {name for name in FILE.findall(command) if not (ROOT / name).exists()} - made - READERS
        assert not unknown, command
        if left := re.search(r"\bcd (?!-)\S+ && (.*)", command):
            assert not {name for name in FILE.findall(left[1]) if not (ROOT / name).exists()} - made, command


def test_the_page_names_existing_places() -> None:
    rows = re.findall(r"^\| ([^|]+) \| `([^`]+\.py)` \| ([^|]*)\|$", read("docs/where-things-live.md"), re.MULTILINE)
    assert len(rows) >= 20
    for behaviour, module, names in rows:
        defined = re.findall(r"^(?:class |def |async def )?(\w+)", read(module), re.MULTILINE)
        missing = set(re.findall(r"`(\w+)`", names)) - set(defined)
        assert not missing, f"{behaviour}: {module} has no {missing}"

"""Pages, the help of commands, docstrings and comments keep the rules of `prose.py`; codespell reads the pages.

`prose_left.toml` counts the sentences of each page and package that are still to be rewritten. There may be fewer,
never more, and the count is lowered with them.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from ctrlmgr import cli
from tests.project import prose

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
PACKAGES = sorted(
    each for each in (ROOT / "ctrlmgr").iterdir() if each.suffix == ".py" or (each / "__init__.py").exists()
)
LEFT: dict[str, int] = tomllib.loads((Path(__file__).parent / "prose_left.toml").read_text(encoding="utf-8"))


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def assert_left(name: str, found: list[str]) -> None:
    """Compare the violations of a page with the number that it still may have."""
    allowed = LEFT.get(name, 0)
    assert len(found) <= allowed, "\n".join(["write these sentences anew:", *found])


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_page_is_in_plain_english(page: Path) -> None:
    found = prose.check(page.read_text(encoding="utf-8"))
    assert_left(name_of(page), [f"{name_of(page)}:{each}" for each in found])


@pytest.mark.parametrize("package", PACKAGES, ids=name_of)
def test_docstrings_and_comments_are_in_plain_english(package: Path) -> None:
    files = [package] if package.is_file() else sorted(package.rglob("*.py"))
    assert_left(name_of(package), [f"{name_of(file)}:{each}" for file in files for each in prose.check_file(file)])


def test_docstrings_and_comments_of_a_file_are_read(tmp_path: Path) -> None:
    file = tmp_path / "one.py"
    lines = [
        '"""Whoever reads.',
        "",
        'Nobody asks."""',
        "",
        "LIMIT = 3",
        '"""Whom it holds."""',
        "# It is nobody's,",
        "# or",
    ]
    file.write_text("\n".join([*lines, "# everybody's.", "who = 'who'  # for whom", ""]), encoding="utf-8")
    assert [each.line for each in prose.check_file(file)] == [1, 3, 6, 7, 10]


def helps(command: click.Command, name: str) -> Iterator[tuple[str, str]]:
    """Yield (place, text) of each help text of a command and of those below it."""
    yield name, (command.help or "").replace("\b", "")
    for parameter in command.params:
        yield f"{name} {parameter.opts[0]}", getattr(parameter, "help", None) or ""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for each in command.list_commands(context):
            if below := command.get_command(context, each):
                yield from helps(below, f"{name} {each}")


def test_the_help_of_commands_is_in_plain_english() -> None:
    texts = dict(helps(cli.ctrlmgr, "ctrlmgr"))
    found = [f"{place}: {each}" for place, text in texts.items() for each in prose.check(text)]
    assert_left("help", found)


def test_no_page_that_is_gone_has_sentences_left() -> None:
    assert set(LEFT) <= {*map(name_of, [*PAGES, *PACKAGES]), "help"}


def test_words_are_spelled_right() -> None:
    command = [sys.executable, "-m", "codespell_lib", *map(str, PAGES)]
    finished = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    assert finished.returncode == 0, finished.stdout + finished.stderr


@pytest.mark.parametrize(
    ("sentence", "rule"),
    [
        ("Nobody waits for the committer.", "person"),
        ("A user who asks is answered.", "person"),
        ("What is written before is kept.", "clause as subject"),
        ("The namespace is asked to go.", "coined verb"),
        ("`dearness` is gone, but Familiar is not.", "old name"),
        ("The log " + "and the cache " * 10 + "agree.", "33 words"),
    ],
)
def test_a_bad_sentence_is_found_wherever_it_is(sentence: str, rule: str) -> None:
    pages = [
        sentence,
        f"- {sentence}",
        f"A page.\n\nIt is short. {sentence}\n",
        f"| `key` | {sentence} |",
        f"## {sentence}",
    ]
    for page in pages:
        assert [each.rule for each in prose.check(page)] == [rule], page


@pytest.mark.parametrize(
    "page",
    [
        "What does it cost? The committer waits up to 1 ms for more appends.",
        "```sh\nkubectl auth whoami  # who am I\n```",
        "    kubectl annotate pod who\n",
        "`who` and [a page](who.md) name no person.",
        "One thing: " + "word " * 25 + "; another: " + "word " * 25,
    ],
)
def test_good_sentences_and_code_pass(page: str) -> None:
    assert not prose.check(page)

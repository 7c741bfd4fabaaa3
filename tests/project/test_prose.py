"""Checks pages, the help of commands, docstrings, comments and messages with the rules of `prose.py`.

In addition, codespell checks the spelling on pages.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from ctrlmgr import cli
from tests.project import prose

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
PACKAGES = sorted(
    each
    for folder in ("ctrlmgr", "tests")
    for each in (ROOT / folder).iterdir()
    if each.suffix == ".py" or (each / "__init__.py").exists()
)
PACKAGES += [ROOT / "bench", ROOT / "examples"]


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def assert_plain(found: list[str]) -> None:
    """Check that a text has no violations of the rules."""
    assert not found, "\n".join(["rewrite these sentences:", *found])


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_page_is_in_plain_english(page: Path) -> None:
    found = prose.check(page.read_text(encoding="utf-8"))
    assert_plain([f"{name_of(page)}:{each}" for each in found])


@pytest.mark.parametrize("package", PACKAGES, ids=name_of)
def test_docstrings_comments_and_messages_are_in_plain_english(package: Path) -> None:
    files = [package] if package.is_file() else sorted(package.rglob("*.py"))
    assert_plain([f"{name_of(file)}:{each}" for file in files for each in prose.check_file(file)])


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
    """Yield (place, text) of each help text of a command and of its subcommands."""
    yield name, command.help or ""
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
    assert_plain(found)


def test_messages_of_a_file_are_read(tmp_path: Path) -> None:
    file = tmp_path / "one.py"
    lines = [
        "name = 'nobody waits'",
        "def fail(name):",
        "    raise ValueError(f'nobody waits for {name}')",
        "click.echo('nobody ' + 'waits')",
        "log.warning('nobody waits', who='nobody')",
        "Setting('Nobody waits.', flag='--x')",
        "View(help='Nobody waits.', name='nobody')",
    ]
    file.write_text("\n".join(lines), encoding="utf-8")
    assert [each.line for each in prose.check_file(file)] == [3, 4, 5, 5, 6, 7]


def test_words_are_spelled_correctly() -> None:
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
        ("The same for a Service.", "no noun"),
        ("Those of the last write.", "no noun"),
        ("Objects are made, whatever the order.", "archaic"),
        ("Nothing of the log is read anew.", "archaic"),
        ("The follower is told of each append.", "told program"),
        ("`dearness` is gone, but Familiar is not.", "old name"),
        ("The log " + "and the cache " * 10 + "agree.", "33 words"),
    ],
)
def test_a_bad_sentence_is_found_in_every_place(sentence: str, rule: str) -> None:
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
        "\b\nctrlmgr why\nctrlmgr who\n",
        "`who` and [a page](who.md) name no person.",
        "One thing: " + "word " * 25 + "; another: " + "word " * 25,
    ],
)
def test_good_sentences_and_code_are_accepted(page: str) -> None:
    assert not prose.check(page)

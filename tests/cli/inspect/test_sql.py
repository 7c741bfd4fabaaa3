"""`ctrlmgr sql`."""

from __future__ import annotations

import csv
import io
import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from ctrlmgr.cli.inspect.sql_shell import Shell
from ctrlmgr.cli.inspect.sql_statements import statements
from ctrlmgr.cli.output.answers import fitted, heading, shared
from ctrlmgr.inspection.database import open_database
from tests.cli.conftest import Run


def test_a_query_prints_a_table(run: Run, database: str) -> None:
    out = run("sql", "--database", database, "-c", "SELECT name, type FROM timeline WHERE revision = 4").out
    assert [line.split() for line in out.splitlines()] == [["name", "type"], ["a", "MODIFIED"]]


def test_json_columns_are_printed_as_json(run: Run, database: str) -> None:
    query = "SELECT revision, changes, '[1, 3]' AS triggers FROM history WHERE revision = 4"
    [record] = json.loads(run("sql", "--database", database, "-c", query, "-o", "json").out)
    assert record == {
        "revision": 4,
        "changes": [{"path": "$.data.key", "from": "1", "to": "2"}],
        "triggers": [1, 3],
    }


def test_csv_can_be_read_back(run: Run, database: str) -> None:
    query = "SELECT 'a \"b\", c' AS text, NULL AS void, x'00ff' AS bytes"
    out = run("sql", "--database", database, "-c", query, "-o", "csv").out
    assert list(csv.reader(io.StringIO(out))) == [["text", "void", "bytes"], ['a "b", c', "", "00ff"]]


def test_control_characters_of_stored_names_are_escaped(run: Run, database: str) -> None:
    out = run("sql", "--database", database, "latest").out
    assert "\x1b" not in out
    assert r"mallory\x1b[31m\n" in out


def test_a_file_is_executed_query_by_query(run: Run, database: str, tmp_path: Path) -> None:
    (tmp_path / "ask.sql").write_text("-- how many; really\nSELECT count(*) AS n FROM event;\n\nSELECT ';' AS m\n")
    assert run("sql", "--database", database, "-f", "ask.sql").out.split() == ["n", "6", "m", ";"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", [], id="nothing"),
        pytest.param("-- a comment;\n", [], id="a comment alone"),
        pytest.param("a; b;", ["a", " b"], id="two"),
        pytest.param("a ';' b; c", ["a ';' b", " c"], id="a semicolon in a string, none at the end"),
    ],
)
def test_a_text_is_split_into_statements(text: str, expected: list[str]) -> None:
    assert list(statements(text)) == expected


def test_a_predefined_query_takes_parameters(run: Run, database: str) -> None:
    asked = ("history", "resource=configmaps", "namespace=default", "name=a")
    records = json.loads(run("sql", "--database", database, *asked, "-o", "json").out)
    assert [(record["revision"], record["actor"]) for record in records] == [(1, "alice"), (3, "alice"), (4, "alice")]


def test_predefined_queries_are_listed_without_a_database(run: Run) -> None:
    finished = run("sql", "--list")
    assert finished.code == 0
    assert "hot_objects limit=20" in finished.out


@pytest.mark.parametrize(
    ("arguments", "code", "complaint"),
    [
        pytest.param(["nonsense"], 2, "no ready-made query 'nonsense'", id="no such query"),
        pytest.param(["history"], 2, "needs resource", id="a parameter is missing"),
        pytest.param(["latest", "limit"], 2, "NAME=VALUE", id="a parameter without a value"),
        pytest.param(["latest", "-c", "SELECT 1"], 2, "exclude each other", id="two things at once"),
        pytest.param(["why", "revision=99"], 1, "beyond the head", id="a revision that is not there yet"),
        pytest.param(["-c", "DROP TABLE event"], 1, "only queries", id="a write"),
        pytest.param(["-c", "SELEC"], 1, "syntax error", id="no SQL"),
    ],
)
def test_a_failing_query_is_reported_with_its_reason(
    run: Run, database: str, arguments: list[str], code: int, complaint: str
) -> None:
    finished = run("sql", "--database", database, *arguments)
    assert (finished.code, finished.out) == (code, "")
    assert complaint in finished.err


@pytest.mark.parametrize(
    ("widths", "room", "expected"),
    [
        pytest.param([3, 5], 80, [3, 5], id="enough for all"),
        pytest.param([3, 500], 80, [3, 77], id="the long one gives way"),
        pytest.param([500, 10, 500], 80, [35, 10, 35], id="two long ones, evenly"),
        pytest.param([9, 9, 9], 2, [1, 1, 1], id="never to nothing"),
        pytest.param([], 80, [], id="no columns"),
    ],
)
def test_the_widest_columns_are_shortened(widths: list[int], room: int, expected: list[int]) -> None:
    assert fitted(widths, room) == expected


@pytest.mark.parametrize(
    ("room", "expected"),
    [
        pytest.param(80, [20, 30, 15], id="enough for all"),
        pytest.param(60, [20, 30, 10], id="headings are broken first"),
        pytest.param(40, [16, 16, 8], id="texts give way, numbers do not"),
    ],
)
def test_columns_share_the_terminal_width(room: int, expected: list[int]) -> None:
    cells = [["a" * 20, "b" * 30, "7"]]
    assert shared(["name", "key", "create_revision"], cells, [False, False, True], room) == expected


def test_headings_wrap_at_word_boundaries() -> None:
    assert heading("create_revision", 9) == "create_\nrevision"
    assert heading("create_revision", 15) == "create_revision"


def on_a_terminal(database: str, tmp_path: Path, width: int, query: str) -> list[str]:
    """Return the lines that a query prints on a terminal that is this number of columns wide."""
    leader, follower = pty.openpty()
    environment = {**os.environ, "TERM": "dumb", "COLUMNS": str(width), "HOME": str(tmp_path)}
    command = [sys.executable, "-m", "ctrlmgr", "sql", "--database", database, "-c", query]
    with subprocess.Popen(command, stdout=follower, env=environment) as process:
        os.close(follower)
        said = b""
        while b" row" not in said.rpartition(b"\r\n")[0].rpartition(b"\n")[2]:
            said += os.read(leader, 4096)
        assert process.wait(30) == 0
    os.close(leader)
    return said.decode().replace("\r", "").splitlines()


def test_too_narrow_columns_become_lines(database: str, tmp_path: Path) -> None:
    lines = on_a_terminal(database, tmp_path, 40, f"SELECT name, '{'x' * 300}' AS long_text FROM objects LIMIT 1")
    assert lines[1:] == ["  name       a", f"  long_text  {'x' * 300}", "1 row"]


# The shell.


@pytest.fixture
def shell(database: str) -> Shell:
    return Shell(open_database(database), "table")


def test_a_query_continues_until_its_semicolon(shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    assert shell.handle("SELECT count(*) AS n")
    assert (shell.prompt, capsys.readouterr().out) == ("   ...> ", "")
    assert shell.handle("FROM event;")
    assert (shell.prompt, capsys.readouterr().out.split()) == ("ctrlmgr> ", ["n", "6"])


def test_an_invalid_query_does_not_end_the_shell(shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    for line in ("SELEC;", "DELETE FROM event;", ".ask nonsense", ".ask why"):
        assert shell.handle(line)
    assert capsys.readouterr().err.count("error: ") == 4


def test_commands_begin_with_a_dot(shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    said = {}
    for line in (".list", ".views", ".views objects", ".ask hot_resources", ".help", ".nonsense", ".views 'x"):
        assert shell.handle(line)
        said[line] = capsys.readouterr().out
    assert "slow_reconciles" in said[".list"]
    assert "endpoints_by_service" in said[".views"]
    assert said[".views objects"].split()[:2] == ["column", "resource"]
    assert "configmaps" in said[".ask hot_resources"]
    assert said[".help"] == said[".nonsense"] == said[".views 'x"]
    assert not shell.handle(".quit")


def test_the_output_format_can_be_changed(shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    shell.handle(".output csv")
    shell.handle("SELECT 1 AS a, 2 AS b;")
    assert capsys.readouterr().out == "a,b\n1,2\n"


@pytest.mark.parametrize(
    ("begun", "words"),
    [
        pytest.param("endpoints_", ["endpoints_by_service"], id="a view"),
        pytest.param("cause_res", ["cause_resource"], id="a column"),
        pytest.param("slow", ["slow_reconciles"], id="a question"),
        pytest.param("HAV", ["HAVING"], id="a word of SQL"),
        pytest.param(".o", [".output"], id="a command"),
        pytest.param("zz", [], id="nothing"),
    ],
)
def test_tab_completes_words(shell: Shell, begun: str, words: list[str]) -> None:
    found = [shell.complete(begun, number) for number in range(len(words) + 1)]
    assert [word for word in found if word and word != "cause_reconcile_id"] == words


def test_sql_starts_a_shell_on_a_terminal(database: str, tmp_path: Path) -> None:
    leader, follower = pty.openpty()
    environment = {**os.environ, "TERM": "dumb", "COLUMNS": "60", "HOME": str(tmp_path)}
    command = [sys.executable, "-m", "ctrlmgr", "sql", "--database", database, "--data-dir", str(tmp_path)]
    with subprocess.Popen(command, stdin=follower, stdout=follower, stderr=follower, env=environment) as process:
        os.close(follower)
        os.write(leader, b"SELECT name, body FROM objects;\n.quit\n")
        said = b""
        while b"ctrlmgr> .quit" not in said:
            said += os.read(leader, 4096)
        assert process.wait(30) == 0
    os.close(leader)
    text = said.decode()
    assert "4 rows" in text
    lines = text.replace("\r", "").splitlines()
    named = sorted(line.split()[0] for line in lines if line[1:2].isalpha() and '{"' in line)
    assert named == ["a", "a", "b", "s"]
    assert {len(line) for line in lines if "──" in line} == {60}  # the terminal's width
    whole = "".join(line.split()[-1] for line in lines if line.strip())  # bodies continue on the next line
    assert whole.count('"uid":"uid-of-a"') == 2
    assert "…" not in text
    assert "SELECT name" in (tmp_path / "sql_history").read_text()

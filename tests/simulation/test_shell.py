from __future__ import annotations

import pytest

from ctrlmgr.simulation.shell import run, run_command


@pytest.mark.parametrize(
    ("script", "ends_at", "code"),
    [
        ("exit 3", 0, 3),
        ("exit 257", 0, 1),
        ("true", 0, 0),
        ("false", 0, 1),
        ("", 0, 0),
        ("sleep 5; exit 1", 5, 1),
        ("sleep 1m", 60, 0),
        ("sleep 0.5 && sleep 1", 1.5, 0),
        ("sleep infinity", None, 0),
        ("false && sleep 9; true", 0, 0),
        ("false || sleep 2", 2, 0),
        ("! true", 0, 1),
        ("exit $CODE", 0, 7),
        ("exit ${CODE}", 0, 7),
        ("exit ${ABSENT:-4}", 0, 4),
        ("N=2; exit $N", 0, 2),
        ('[ "$CODE" = 7 ]', 0, 0),
        ("[ $CODE -eq 7 ] && exit 1 || exit 2", 0, 1),
        ("test $CODE -lt 3", 0, 1),
        ("[[ ! -f /x ]]", 0, 0),
        ("if [ $CODE -gt 5 ]; then exit 1; else exit 2; fi", 0, 1),
        ("if false; then exit 1; elif true; then exit 2; else exit 3; fi", 0, 2),
        ("if true; then if false; then exit 1; fi; exit 4; fi", 0, 4),
        ("for i in 1 2 3; do sleep 1; done", 3, 0),
        ("for i in $(seq 4); do sleep $i; done", 10, 0),
        ("while true; do sleep 1; done", None, 0),
        ("until true; do sleep 1; done", 0, 0),
        ("{ sleep 1; exit 5; }", 1, 5),
        ("( sleep 2 )", 2, 0),
        ("exec sleep 3", 3, 0),
        ("sh -c 'exit 9'", 0, 9),
        ("# a comment\nexit 2", 0, 2),
        ("nginx -g 'daemon off;'", None, 0),
        ("cat /absent", 0, 1),
        ("echo x > /f; rm /f; cat /f", 0, 1),
        ("rm /absent", 0, 1),
        ("rm -f /absent", 0, 0),
        ("mkdir -p /a/b; [ -d /a ]", 0, 0),
        ("test $(id -u) -eq 65534", 0, 0),
        ("exit `seq 5 5`", 0, 5),
        ('X="$(echo 3)"; exit $X', 0, 3),
        ("for i in $(seq 2 2 6); do sleep $i; done", 12, 0),
        ("i=0; while [ $i -lt 3 ]; do sleep 1; i=$((i+1)); done; exit $i", 3, 3),
        ("exit $((2 + 3 * $CODE))", 0, 23),
        ("exit $(( 7 % 4 > 2 ))", 0, 1),
        ("exit $((nonsense ++))", 0, 0),
        ("echo $(exit 4); exit $?", 0, 0),
    ],
)
def test_how_scripts_end(script: str, ends_at: float | None, code: int) -> None:
    found = run(script, {}, {"CODE": "7", "UID": "65534"})
    assert (found.ends_at, found.code) == (ends_at, code)


def test_what_is_written_and_when() -> None:
    found = run("echo one; sleep 2; echo -n two; printf 'a\\nb\\n'; echo gone > /dev/null", {}, {})
    assert found.lines == [(0, "one", True), (2, "two", False), (2, "a", True), (2, "b", True)]
    assert "".join(each.written for each in found.lines) == "one\ntwoa\nb\n"


def test_files_are_as_they_were_at_each_moment() -> None:
    files: dict[str, str] = {}
    found = run("echo ok > /health; sleep 10; rm -rf /health; sleep 10; echo a >> /log; echo b >> /log", files, {})
    assert found.files_at(9.9) == {"/health": "ok\n"}
    assert found.files_at(10) == {}
    assert files == {"/log": "a\nb\n"}


def test_files_that_were_there_are_found() -> None:
    script = "if [[ -r /data/foo ]] ; then exit 0 ; else touch /data/foo ; exit 1 ; fi"
    files: dict[str, str] = {}
    assert [run(script, files, {}).code for _ in range(2)] == [1, 0]


def test_an_unknown_command_runs_for_ever_and_is_named() -> None:
    found = run("echo before; frobnicate --all; echo after", {}, {})
    assert (found.ends_at, found.unknown, [each.text for each in found.lines]) == (None, "frobnicate", ["before"])


@pytest.mark.parametrize(
    ("command", "code"),
    [(["sh", "-c", "exit 4"], 4), (["/bin/bash", "-ec", "exit 5"], 5), (["false"], 1), (["sleep", "0"], 0)],
)
def test_commands_as_words(command: list[str], code: int) -> None:
    assert run_command(command, {}, {}).code == code


@pytest.mark.parametrize(
    ("script", "written", "kept"),
    [
        ("echo lost >&2; exit 3", "lost\n", {}),
        ("echo lost 1>&2", "lost\n", {}),
        ("echo x 2>&1", "x\n", {}),
        ("echo x > /f 2>&1", "", {"/f": "x\n"}),
        ("echo x &> /f; echo y &>> /f", "", {"/f": "x\ny\n"}),
        ("echo x 1> /f; echo y 1>> /f", "", {"/f": "x\ny\n"}),
        ("echo x 2>> /f", "x\n", {}),
        ("echo a2 b1", "a2 b1\n", {}),
    ],
)
def test_where_what_is_written_goes(script: str, written: str, kept: dict[str, str]) -> None:
    files: dict[str, str] = {}
    found = run(script, files, {})
    assert not found.unknown
    assert "".join(each.written for each in found.lines) == written
    assert files == kept

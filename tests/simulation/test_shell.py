from __future__ import annotations

import pytest

from ctrlmgr.simulation.behaviour import ContainerExit
from ctrlmgr.simulation.shell import run, run_command
from ctrlmgr.simulation.simulated_files import Files


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
def test_exit_codes_of_scripts(script: str, ends_at: float | None, code: int) -> None:
    found = run(script, Files(), {"CODE": "7", "UID": "65534"})
    assert (found.ends_at, found.code) == (ends_at, code)


def test_output_has_its_time() -> None:
    found = run("echo one; sleep 2; echo -n two; printf 'a\\nb\\n'; echo gone > /dev/null", Files(), {})
    assert found.lines == [(0, "one", True), (2, "two", False), (2, "a", True), (2, "b", True)]
    assert "".join(each.written for each in found.lines) == "one\ntwoa\nb\n"


def test_files_are_read_as_of_each_moment() -> None:
    files = Files()
    run("echo ok > /health; sleep 10; rm -rf /health; sleep 10; echo a >> /log; echo b >> /log", files, {})
    assert files.at(9.9) == {"/health": "ok\n"}
    assert files.at(10) == {}
    assert files.at(20) == {"/log": "a\nb\n"}


def test_existing_files_are_found() -> None:
    script = "if [[ -r /data/foo ]] ; then exit 0 ; else touch /data/foo ; exit 1 ; fi"
    files = Files()
    assert [run(script, files, {}).code for _ in range(2)] == [1, 0]


def test_an_unknown_command_runs_forever_and_is_named() -> None:
    found = run("echo before; frobnicate --all; echo after", Files(), {})
    assert (found.ends_at, found.unknown, [each.text for each in found.lines]) == (None, "frobnicate", ["before"])


@pytest.mark.parametrize(
    ("command", "code"),
    [(["sh", "-c", "exit 4"], 4), (["/bin/bash", "-ec", "exit 5"], 5), (["false"], 1), (["sleep", "0"], 0)],
)
def test_commands_are_executed_from_words(command: list[str], code: int) -> None:
    assert run_command(command, Files(), {}).code == code


@pytest.mark.parametrize(
    ("script", "written", "kept"),
    [
        ("echo lost >&2; exit 3", "lost\n", {}),
        ("echo lost 1>&2", "lost\n", {}),
        ("echo x 2>&1", "x\n", {}),
        ("echo x > /f 2>&1", "", {"/f": "x\n"}),
        ("echo x &> /f; echo y &>> /f", "", {"/f": "x\ny\n"}),
        ("echo x 1> /f; echo y 1>> /f", "", {"/f": "x\ny\n"}),
        ("echo x 2>> /f", "x\n", {"/f": ""}),
        ("echo a2 b1", "a2 b1\n", {}),
        ("echo x 3> /f; exec 4>&1; echo y 3>&-", "x\ny\n", {"/f": ""}),
        ("echo x <> /f; cat <&0", "x\n", {"/f": ""}),
    ],
)
def test_output_is_redirected(script: str, written: str, kept: dict[str, str]) -> None:
    files = Files()
    found = run(script, files, {})
    assert not found.unknown
    assert "".join(each.written for each in found.lines) == written
    assert dict(files) == kept


@pytest.mark.parametrize(
    ("script", "written"),
    [
        # words
        ("X='a  b'; echo $X; echo \"$X\"", "a b\na  b\n"),
        ("echo 'single $X' \"double \\$X\" a\\ b", "single $X double $X a b\n"),
        ('X=; echo [$X] ["$X"] ; for i in $X; do echo never; done', "[] []\n"),
        ("echo ${A:-x} ${A-y} ${A:=z} ${A} ${A:+set} ${#A}", "x y z z set 1\n"),
        ("F=/a/b.t.gz; echo ${F##*/} ${F%.*} ${F%%.*} ${F#/}", "b.t.gz /a/b.t /a/b a/b.t.gz\n"),
        ("F=/a/b.b; echo ${F/b/c} ${F//b/c} ${F:1:3} ${F:4}", "/a/c.b /a/c.c a/b .b\n"),
        ("echo $(echo $(echo deep)) `echo old`", "deep old\n"),
        ("echo $(( (1 + 2) * 3 )) $((7 / 2))", "9 3\n"),
        ("echo a > /d/x.txt; echo b > /d/y.txt; for f in /d/*.txt; do cat $f; done; echo /d/*.no", "a\nb\n/d/*.no\n"),
        ("set -- a 'b c'; echo $# $2; for i in \"$@\"; do echo [$i]; done; shift; echo $1", "2 b c\n[a]\n[b c]\nb c\n"),
        ("[ $RANDOM -lt 32768 ] && echo $(( $RANDOM / 32768 ))", "0\n"),
        ("echo ~ $HOME", "/root /root\n"),
        # pipes, redirections, input
        ("printf 'b\\na\\nb\\n' | sort -u | wc -l", "2\n"),
        ("f=/n; n=$(echo x >> $f ; echo y >> $f; wc -l $f | awk {'print $1'}); echo $n", "2\n"),
        ("echo one two | { read a b; echo $b; }", "two\n"),
        ("printf '1\\n2\\n' | while read n; do echo $((n * 2)); done", "2\n4\n"),
        ('cat <<EOF\n  a $CODE "q"\nEOF\necho after', '  a 7 "q"\nafter\n'),
        ("cat <<'EOF'\na $CODE\nEOF", "a $CODE\n"),
        ("cat > /f <<-EOF\n\tx\n\tEOF\ncat < /f", "x\n"),
        ("cat /absent 2>/dev/null || echo missing", "missing\n"),
        ("X=$(cat /absent); echo [$X]", "cat: can't open '/absent': No such file or directory\n[]\n"),
        ("{ echo a; echo b >&2; } 2>/dev/null", "a\n"),
        ("(cd /tmp; pwd); pwd", "/tmp\n/\n"),
        # tools
        ("expr 7 % 2; expr 2 '*' 3; expr 1 = 2; expr length abc; expr abc : 'a\\(.\\)'", "1\n6\n0\n3\nb\n"),
        ("printf '%s=%d\\n' a 1 b 2", "a=1\nb=2\n"),
        ("echo a:b:c | cut -d: -f2; echo abc | tr a-c A-C; echo abc | tr -d b", "b\nABC\nac\n"),
        ("seq 3 > /f; head -n1 /f; tail -1 /f; grep -c . /f; grep -v 2 /f", "1\n3\n3\n1\n3\n"),
        ("seq 3 > /f; grep -E '1|3' /f; grep '1\\|2' /f; grep -q 9 /f || echo none", "1\n3\n1\n2\nnone\n"),
        ("basename /a/b.c .c; dirname /a/b", "b\n/a\n"),
        ("echo x > /a; cp /a /b; mv /b /c; cat /c; ls / | grep -v '^a$'", "x\nc\n"),
        ("cp /image/tool /shared/; ls /shared; cat /shared/tool", "tool\n"),
        ("mkdir -p /d; cp -n /bin/x /d; ln -s /d/x /d/y; ls /d", "x\ny\n"),
        ("mkdir -p /d/e; touch /d/x /d/e/y; find /d", "/d\n/d/e\n/d/e/y\n/d/x\n"),
        (
            "mkdir -p /d/e; touch /d/x /d/e/y; find /d -type f -name 'y*'; find /d -mindepth 1 -maxdepth 1",
            "/d/e/y\n/d/e\n/d/x\n",
        ),
        (
            "mkdir -p /d/e; touch /d/x /d/e/y; find /d -delete; find /d; find / -name y",
            "find: '/d': No such file or directory\n",
        ),
        ("echo a | tee /t | cat; cat /t", "a\na\n"),
        ("A=1 env | grep ^A=; env B=2 printenv B; hostname; id", "A=1\n2\n\nuid=65534 gid=65534\n"),
        # functions and control
        ("f() { echo $1; return 3; }; f x; echo $?", "x\n3\n"),
        ("function g { local X=1; echo $X; }; g", "1\n"),
        ("for i in 1 2 3; do [ $i = 2 ] && continue; [ $i = 3 ] && break; echo $i; done", "1\n"),
        ("for i in 1 2; do for j in 1 2; do break 2; done; done; echo $i$j", "11\n"),
        ("case abc in x) echo no;; a*|y) echo yes;; *) echo no;; esac", "yes\n"),
        ("case '*' in '?') echo no;; \"*\") echo literal;; esac", "literal\n"),
        ("[[ abc == a* && ! x == 'a*' ]] && echo yes; [[ ( a = b || a = a ) ]] && echo yes", "yes\nyes\n"),
        ("[[ abc =~ ^a.c$ && b > a ]] && [ -n a -a ! -z a -o a = b ] && echo yes", "yes\n"),
        ("eval 'X=1; echo $X'; command -v sh; : ignored; trap 'x' TERM", "1\nsh\n"),
        ("sleep 5 & echo first; wait; echo last", "first\nlast\n"),
    ],
)
def test_output_of_scripts(script: str, written: str) -> None:
    found = run(script, Files(), {"CODE": "7", "UID": "65534", "HOSTNAME": ""})
    assert ("".join(each.written for each in found.lines), found.unknown, found.code) == (written, "", 0)


@pytest.mark.parametrize(
    ("script", "ends_at", "code"),
    [
        ("set -e; false; exit 5", 0, 1),
        ("set -e; if false; then :; fi; false || true; ! true; exit 5", 0, 5),
        ("set -eu; X=$(false); exit 5", 0, 1),
        ("true | false", 0, 1),
        ("false | true", 0, 0),
        ("sleep 2 & sleep 5; wait", 5, 0),
        ("sleep 9 & sleep 5; wait", 9, 0),
        ("sleep 9 & exit 3", 0, 3),
        ("nginx & sleep 2", 2, 0),
        ("nginx & wait", None, 0),
        ("tail -f /log", None, 0),
        ("f() { f; }; f", None, 0),
        ("timeout 3 sleep 9", 3, 124),
        ("timeout 9s sleep 3", 3, 0),
        ("if [[ -r /data/foo ]]\nthen\n exit 0\nelif [[ $CODE -eq 7 ]]\nthen\n sleep 4\nelse\n exit 1\nfi\n", 4, 0),
        ("if [ $(expr ${CODE} % 2) -ne 0 ]; then\n exit 1\nelse\n exit 0\nfi", 0, 1),
        ("exit 'x'", 0, 2),
    ],
)
def test_exit_codes_of_further_scripts(script: str, ends_at: float | None, code: int) -> None:
    found = run(script, Files(), {"CODE": "7"})
    assert (found.ends_at, found.code) == (ends_at, code)


@pytest.mark.parametrize("script", ["if true; then", "echo 'open", "a=(1 2)", "diff <(ls) x", "echo $(", ") fi"])
def test_an_unparsable_script_is_unknown(script: str) -> None:
    assert run(script, Files(), {}).ends_at is None
    found = run(script, Files(), {}, ContainerExit(4, 2.0))
    assert (found.ends_at, found.code, found.unknown) == (2.0, 4, "sh")


def test_unknown_commands_end_as_configured_and_the_script_continues() -> None:
    found = run("apk add x || exit 9; X=$(jq y); unzip x && echo [$X]", Files(), {}, ContainerExit(0, 1.5))
    assert (found.ends_at, found.code, found.unknown) == (4.5, 0, "apk")
    assert found.lines == [(4.5, "[]", True)]
    assert run("nginx", Files(), {}, ContainerExit()).ends_at is None


def test_a_read_only_root_is_not_written() -> None:
    files = Files(is_read_only=True)
    found = run("touch /x; echo $?; echo y > /y || echo no; echo z > /dev/termination-log", files, {})
    assert found.code == 0
    assert [each.text for each in found.lines] == [
        "touch: /x: Read-only file system",
        "1",
        "sh: can't create /y: Read-only file system",
        "no",
    ]
    assert dict(files) == {"/dev/termination-log": "z\n"}


def test_files_are_relative_to_the_working_directory() -> None:
    files = Files()
    run("touch a; cd /d; touch b ./c ../e", files, {"PWD": "/w"})
    assert set(files) == {"/w/a", "/d/b", "/d/c", "/e"}

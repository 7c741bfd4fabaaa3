"""Tests of simulated commands whose input arrives in pieces, with and without a terminal."""

from __future__ import annotations

import io
import tarfile

from ctrlmgr.simulation.shell.console import Command, Setting, Terminal, command
from ctrlmgr.simulation.simulated_files import Files
from ctrlmgr.simulation.simulated_network import OPEN


def start(*words: str, files: Files | None = None, is_terminal: bool = False) -> Command | Terminal:
    seen = Files().copied(5.0) if files is None else files.copied(5.0, files.changed)
    setting = Setting(seen, {"HOSTNAME": "web", "PATH": "/bin"}, OPEN)
    return command(words, setting, is_terminal=is_terminal)


def output_of(running: Command | Terminal, *pieces: bytes, now: float = 0.0) -> bytes:
    """Return the output of a command for these pieces of input."""
    return b"".join(chunk.data for piece in pieces for chunk in running.receive(piece, now))


def test_output_does_not_wait_for_unread_input() -> None:
    running = start("sh", "-c", "echo one; sleep 2; echo two >&2; exit 3")
    chunks = running.receive(b"", 0.0)
    assert [(each.at, each.is_error, each.data) for each in chunks] == [(0.0, False, b"one\n"), (2.0, True, b"two\n")]
    assert (running.code, running.ends_at, running.end(0.0)) == (3, 2.0, [])


def test_output_appears_after_its_input_has_arrived() -> None:
    running = start("sh", "-c", "read a; echo got $a; read b; echo and $b")
    assert output_of(running, b"", b"on", b"e\n") == b"got one\n"
    assert running.code is None
    assert output_of(running, b"two\nmore") == b"and two\n"
    assert running.code == 0


def test_the_rest_of_the_input_is_awaited() -> None:
    running = start("cat")
    assert output_of(running, b"", b"some ", b"input") == b""
    assert [each.data for each in running.end(0.0)] == [b"some input"]


def test_an_unknown_command_is_named() -> None:
    running = start("frobnicate")
    assert b"frobnicate: not found: this node is simulated" in output_of(running, b"")
    assert running.code == 127


def test_a_command_that_runs_for_ever_does_not_end() -> None:
    running = start("sleep", "infinity")
    assert (output_of(running, b""), running.code) == (b"", None)


def test_a_terminal_echoes_edits_and_keeps_its_state() -> None:
    running = start("sh", is_terminal=True)
    assert output_of(running, b"") == b"/ # "
    assert output_of(running, b"cd /tmq\x7fp\r") == b"cd /tmq\b \bp\r\n/tmp # "
    assert output_of(running, b"x=1; echo a > f\r").endswith(b"/tmp # ")
    assert output_of(running, b"\x1b[A", b"cat f; echo $x\r").endswith(b"a\r\n1\r\n/tmp # ")
    assert output_of(running, b"half\x03") == b"half^C\r\n/tmp # "
    assert b"run for ever" in output_of(running, b"sleep infinity\r")
    assert output_of(running, b"false\r", b"\x04").endswith(b"/tmp # ")
    assert running.code == 1
    assert running.files["/tmp/f"] == "a\n"


def test_time_advances_between_lines() -> None:
    running = start("sh")
    assert [each.at for each in running.receive(b"sleep 2; echo a\n", 1.0)] == [3.0]
    assert [each.at for each in running.receive(b"echo b\n", 10.0)] == [10.0]


def test_a_shell_without_a_terminal_runs_its_input() -> None:
    running = start("sh")
    assert output_of(running, b"echo on", b"e\nnothing-such\n").startswith(b"one\nsh: nothing-such: not found")
    assert [each.data for each in running.end(0.0)] == []
    assert running.code == 127


def test_tar_keeps_every_byte() -> None:
    data = bytes(range(256)) * 10
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        info = tarfile.TarInfo("sub/file")
        info.size = len(data)
        tar.addfile(info, io.BytesIO(data))
    unpacks = start("tar", "-xmf", "-", "-C", "/data")
    unpacks.receive(archive.getvalue(), 0.0)
    unpacks.end(0.0)
    assert (unpacks.code, [*unpacks.files]) == (0, ["/data/sub/file"])
    packs = start("tar", "cf", "-", "/data", files=unpacks.files)
    with tarfile.open(fileobj=io.BytesIO(output_of(packs, b""))) as tar:
        assert tar.getnames() == ["data", "data/sub/file"]
        content = tar.extractfile("data/sub/file")
        assert content is not None
        assert content.read() == data


def test_tar_names_missing_files() -> None:
    running = start("tar", "cf", "-", "/none")
    assert b"tar: /none: Cannot stat" in output_of(running, b"")
    assert running.code == 2


def test_tar_fails_without_its_archive() -> None:
    running = start("tar", "xzf", "/none.tgz")
    assert output_of(running, b"").startswith(b"tar: /none.tgz: Cannot open: No such file or directory\n")
    assert running.code == 2


def test_tar_refuses_a_simulated_download() -> None:
    files = Files()
    files["/site.tgz"] = ""
    running = start("tar", "xzf", "/site.tgz", files=files)
    assert b"the archive is empty, as simulated downloads are" in output_of(running, b"")
    assert running.code == 0

"""Tests of the scripts that install the programs for tests: Python, system packages, and the programs that selected
tests need.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from shutil import which

import pytest

from tests.project.shell import put_programs

ROOT = Path(__file__).parents[2]
LOCKED = "E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 4711 (dpkg)"
UNKNOWN = "E: Unable to locate package chromium"


def run(tmp_path: Path, script: str, apt_get: str) -> subprocess.CompletedProcess[str]:
    """Run shell code after sourcing the scripts, as root on a distribution on which the code of `apt_get` replaces
    apt-get.
    """
    programs = tmp_path / "bin"
    programs.mkdir()
    put_programs(programs, {"apt-get": apt_get, "id": "echo 0", "sleep": f'echo "$1" >>{tmp_path}/slept'})
    sources = "".join(f". scripts/{name}.sh\n" for name in ("environment", "packages", "chromium"))
    command = ["sh", "-euc", f"PATH={programs}:$PATH\n{sources}{script}"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)


def test_a_lock_of_another_process_is_awaited(tmp_path: Path) -> None:
    apt_get = f'echo x >>{tmp_path}/tries; [ $(wc -l <{tmp_path}/tries) -gt 3 ] || {{ echo "{LOCKED}" >&2; exit 100; }}'
    done = run(tmp_path, "apt -qq install chromium && echo installed", apt_get)
    assert done.stdout == "installed\n"
    assert (tmp_path / "slept").read_text() == "2\n2\n2\n"
    assert done.stderr == f"==> another program holds apt's lock; waiting for it: {LOCKED}\n"


def test_the_error_of_apt_is_shown(tmp_path: Path) -> None:
    done = run(tmp_path, "find_chromium() { return 1; }\nget_chromium", f'echo "{UNKNOWN}" >&2; exit 100')
    assert done.returncode == 1
    assert f"failed:\n    {UNKNOWN}\n" in done.stderr
    assert "error: the tests need Chromium" in done.stderr
    assert not (tmp_path / "slept").exists()


SLOW_AT_FIRST = 'if [ -e "$0.ran" ]; then echo 3500; else : >"$0.ran"; echo 9000; fi'


@pytest.mark.parametrize(
    ("pythons", "found"),
    [
        ({"python3.13": "echo 6000", "python3.11": "echo 3500"}, "python3.11"),
        ({"python3.13": "echo 3700", "python3.11": "echo 3500"}, "python3.13"),
        ({"python3.13": "exit 1", "python3": "echo 9000"}, "python3"),
        ({"python3.13": '[ "$3" != venv ] || exit 1; echo 10', "python3.12": "echo 3500"}, "python3.12"),
        ({"python3.13": "echo 6000", "python3.11": SLOW_AT_FIRST}, "python3.11"),
        ({"python3.12": "exit 1"}, None),
    ],
    ids=["much quicker", "about as quick", "too old", "makes no environment", "slow at first", "none"],
)
def test_the_fastest_python_is_chosen(tmp_path: Path, pythons: dict[str, str], found: str | None) -> None:
    put_programs(tmp_path, pythons)
    (tmp_path / "awk").symlink_to(which("awk") or "")
    command = ["/bin/sh", "-uc", f". scripts/environment.sh\nPATH={tmp_path}\nfind_python venv"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    assert (done.stdout, done.returncode) == ((f"{tmp_path / found}\n", 0) if found else ("", 1))


def test_a_sufficiently_new_python_is_timed() -> None:
    command = ["sh", "-euc", '. scripts/environment.sh\n"$0" -c "$rate" venv', sys.executable]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60)
    assert 100 < int(done.stdout) < 10_000_000


def test_another_implementation_of_python_is_skipped() -> None:
    other = "import sys; sys.implementation.name = 'other'"
    command = ["sh", "-uc", f'. scripts/environment.sh\n"$0" -c "{other}$rate"', sys.executable]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 1)


@pytest.mark.parametrize(
    ("chosen", "needs"),
    [
        (["tests/workqueue"], ""),
        (["tests/eventlog/test_hash_chain.py"], ""),
        (["tests/eventlog/postgres/test_pgbouncer.py"], "pgbouncer postgres"),
        (["tests/e2e/workloads/test_explanations_in_a_browser.py", "-n", "2"], "chromium kubectl postgres"),
        (["tests/nothing_of_that_name"], ""),
    ],
    ids=str,
)
def test_only_programs_required_by_the_chosen_tests_are_installed(chosen: list[str], needs: str) -> None:
    command = [sys.executable, "-m", "tests.project.programs", *chosen]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=100)
    assert done.stdout == f"{needs}\n"


def test_the_readme_lists_what_the_tests_install_as_root() -> None:
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert "runs as root on a distribution with `apt-get`, it also installs PostgreSQL" in text
    assert "the dependencies of PgBouncer, Chromium and iproute2" in text

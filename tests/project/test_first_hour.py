"""Tests that follow the tutorials as new users do, in empty directories with a new environment, and compare the
outputs.

The tutorials are for an operator developer, a user of other clients, a CI engineer, and an engineer with a recording to
replay. The tutorials share one environment, into which the first page installs ctrlmgr. pip finds the dependencies of
ctrlmgr in the environment that runs this test, and downloads no packages.
"""

from __future__ import annotations

import os
import re
import subprocess
import sysconfig
import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest

from ctrlmgr.framework.project import install_source, write
from tests.e2e.kubectl import find_kubectl
from tests.project.page_player import check_page, uses_kubectl
from tests.project.shell import put_programs

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "operators"
TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
IN_A_CHECKOUT = {"investigate-a-recording"}
"""The pages that need the project's recordings, and say so."""


def typed(page: str) -> str:
    """Return the commands of the first shell block of a page."""
    found = re.search(r"^```sh\n(.*?)^```", (PAGES / page).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert found
    return found[1]


def packages_without_ctrlmgr(folder: Path) -> Path:
    """Create a folder with the packages of the current environment except ctrlmgr, which the page installs."""
    folder.mkdir()
    for each in Path(sysconfig.get_path("purelib")).iterdir():
        if "ctrlmgr" not in each.name:
            (folder / each.name).symlink_to(each)
    return folder


def a_new_users(home: Path) -> dict[str, str]:
    """Return the environment variables of a user whose checkout is at `~/ctrlmgr`."""
    home.mkdir()
    (home / "ctrlmgr").symlink_to(ROOT)
    packages = str(packages_without_ctrlmgr(home / "packages"))
    path = os.pathsep.join(each for each in os.environ["PATH"].split(os.pathsep) if ".venv" not in each)
    # Use no index, and hatchling of the environment of this test; `0` disables the isolation of builds in pip.
    pip = {"PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    return {"HOME": str(home), "PATH": path, "PYTHONPATH": packages, **pip}


class InstallationResult(NamedTuple):
    """The result of following the page about installation."""

    work: Path
    """The folder in which the page's commands ran."""
    environment: dict[str, str]
    """The environment variables of a shell in which the virtual environment is active."""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> InstallationResult:
    """Follow the page about installation."""
    folder = tmp_path_factory.mktemp("newcomers")
    environment = a_new_users(folder / "home")
    (folder / "work").mkdir()
    told = shell(typed("install.md") + "command -v ctrlmgr\n", folder / "work", environment)
    programs = folder / "work" / ".venv" / "bin"
    assert str(programs / "ctrlmgr") in told.splitlines(), told
    return InstallationResult(folder / "work", {**environment, "PATH": f"{programs}{os.pathsep}{environment['PATH']}"})


def shell(script: str, folder: Path, environment: dict[str, str]) -> str:
    """Run a shell script in a folder, and return the output of the script."""
    done = subprocess.run(
        ["sh", "-e"],
        input=script,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_an_operators_tests_pass_after_at_most_twelve_commands() -> None:
    lines = ["git clone", *(typed("install.md") + typed("first-operator.md")).splitlines()]
    (last,) = [number for number, line in enumerate(lines, 1) if "pytest -q" in line]
    assert last <= 12


def test_two_pages_lead_to_an_operators_tests(installed: InstallationResult) -> None:
    told = shell(typed("first-operator.md"), installed.work, installed.environment)
    assert "5 passed" in told
    assert "name: cornershops.example.com" in told
    assert re.search(r"already satisfied: pytest>=", told), "the project's extra does not require pytest"
    required = tomllib.loads((installed.work / "corner-shop" / "pyproject.toml").read_text())["project"]["dependencies"]
    assert required == [f"ctrlmgr @ {Path(installed.environment['HOME'], 'ctrlmgr').as_uri()}"]


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_a_tutorial_runs(page: Path, installed: InstallationResult, tmp_path: Path) -> None:
    folder, programs = tmp_path / "empty", tmp_path / "bin"
    folder.mkdir()
    programs.mkdir()
    if page.stem in IN_A_CHECKOUT:
        (folder / "tests").mkdir()
        (folder / "tests" / "recordings").symlink_to(ROOT / "tests" / "recordings")
    if uses_kubectl(page):
        put_programs(programs, {"kubectl": f'exec "{find_kubectl()}" "$@"'})
    path = f"{installed.environment['PATH']}{os.pathsep}{programs}"
    check_page(page, folder, {**installed.environment, "PATH": path, "HOME": str(tmp_path)})


@pytest.mark.parametrize(
    ("recorded", "wanted"),
    [
        ({"url": "file:///src/ctrlmgr", "dir_info": {"editable": True}}, "ctrlmgr @ file:///src/ctrlmgr"),
        (
            {"url": "file:///w/ctrlmgr-1-py3-none-any.whl", "archive_info": {}},
            "ctrlmgr @ file:///w/ctrlmgr-1-py3-none-any.whl",
        ),
        (
            {"url": "https://git.example.com/ctrlmgr.git", "vcs_info": {"vcs": "git", "commit_id": "0f1e2d"}},
            "ctrlmgr @ git+https://git.example.com/ctrlmgr.git@0f1e2d",
        ),
        ({"url": "file:///mono", "dir_info": {}, "subdirectory": "py"}, "ctrlmgr @ file:///mono#subdirectory=py"),
    ],
    ids=["checkout", "wheel", "git", "subdirectory"],
)
def test_a_project_requires_the_ctrlmgr_that_wrote_it(recorded: dict[str, object], wanted: str) -> None:
    assert install_source.requirement_of(recorded) == wanted


def test_a_checkout_that_is_not_installed_is_named_by_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(install_source, "NAME", "no-such-distribution")
    assert install_source.requirement() == f"no-such-distribution @ {ROOT.as_uri()}"
    write(tmp_path, "shop", "example.com")
    assert ROOT.as_uri() in (tmp_path / "pyproject.toml").read_text()

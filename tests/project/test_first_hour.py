"""A newcomer in an empty directory, with a new environment, types what the pages say and gets tests that pass.

The packages that ctrlmgr needs are those of the environment that runs this test: pip finds them there and downloads
none.
"""

from __future__ import annotations

import os
import re
import subprocess
import sysconfig
import tomllib
from pathlib import Path

import pytest

from ctrlmgr.framework.project import install_source, write

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "operators"


def typed(page: str) -> str:
    """Return the commands of the first block for a shell on a page."""
    found = re.search(r"^```sh\n(.*?)^```", (PAGES / page).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert found
    return found[1]


def packages_without_ctrlmgr(folder: Path) -> Path:
    """Make a folder with the packages of this environment except ctrlmgr itself, which the page has to install."""
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
    # No index, and hatchling from where this test runs; `0` is how pip spells that it shall not isolate a build.
    pip = {"PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    return {"HOME": str(home), "PATH": path, "PYTHONPATH": packages, **pip}


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_two_pages_lead_from_nothing_to_an_operators_tests(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    script = typed("install.md") + typed("first-operator.md")
    assert len(script.splitlines()) <= 12
    done = subprocess.run(
        ["sh", "-e"],
        input=script,
        cwd=work,
        env=a_new_users(tmp_path / "home"),
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    told = done.stdout + done.stderr
    assert done.returncode == 0, told
    assert "5 passed" in told
    assert "name: cornershops.example.com" in told
    assert re.search(r"already satisfied: pytest>=", told), "the project's extra does not require pytest"
    required = tomllib.loads((work / "corner-shop" / "pyproject.toml").read_text())["project"]["dependencies"]
    assert required == [f"ctrlmgr @ {(tmp_path / 'home' / 'ctrlmgr').as_uri()}"]
    assert str(work / ".venv") in told  # what ran was the ctrlmgr of the new environment


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

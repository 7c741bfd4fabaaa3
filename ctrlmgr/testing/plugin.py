"""A pytest plugin that runs recordings as tests, and that provides fixtures which start a control plane.

Guarantees: modules are imported only if a test uses them, so that an installed ctrlmgr does not slow down other tests.
Only recordings that the setting `ctrlmgr_recordings` names are collected. A fixture closes everything that it has
opened.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from ctrlmgr.testing.namespaces import OwnNamespace
    from ctrlmgr.testing.replays import Replayer
    from ctrlmgr.testing.served import ServerProcess

_RECORDINGS = "ctrlmgr_recordings"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the setting `ctrlmgr_recordings` and the option `--ctrlmgr-rights`."""
    text = "file names (globs) of recordings, each of which is a test: ctrlmgr replays it, and nothing may diverge"
    parser.addini(_RECORDINGS, text, type="args", default=[])
    rights = "add the rights that controllers use in harnesses to this file, for `ctrlmgr rbac`"
    parser.addoption("--ctrlmgr-rights", dest="ctrlmgr_rights", metavar="FILE", help=rights)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """If the option `--ctrlmgr-rights` is given, write the permissions that were used to a file.

    Only harnesses record permissions.
    """
    file = session.config.getoption("ctrlmgr_rights")
    observing = sys.modules.get("ctrlmgr.testing.observed_rights")
    if file and observing is not None:
        observing.save(Path(file))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> None:
    """Hide ctrlmgr's own frames in the report of a failed test, except in ctrlmgr's own tests."""
    is_own = item.config.rootpath == Path(__file__).parents[2]
    if call.excinfo is not None and "ctrlmgr" in sys.modules and not is_own:
        from ctrlmgr.testing.user_frames import hide_frames

        hide_frames(call.excinfo.value)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect each recording that the setting `ctrlmgr_recordings` names as a test."""
    if any(fnmatch(file_path.name, pattern) for pattern in parent.config.getini(_RECORDINGS)):
        file: pytest.Collector = RecordingFile.from_parent(parent, path=file_path)
        return file
    return None


class RecordingFile(pytest.File):
    """A recording as a test file."""

    def collect(self) -> Iterator[RecordingItem]:
        """Yield the only test of the file."""
        yield RecordingItem.from_parent(self, name="replay")


class RecordingItem(pytest.Item):
    """A test that passes if replaying a recording shows no divergence."""

    def runtest(self) -> None:
        """Replay the recording through all controllers."""
        from ctrlmgr.testing.replays import Replayer, shown

        with Replayer(self.path.parent) as replay:
            report = replay(self.path)
        if report.divergences:
            pytest.fail(shown(report), pytrace=False)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Return the location of the test, which is the recording's file."""
        return self.path, None, f"replay of {self.path.name}"


@pytest.fixture
def replay(request: pytest.FixtureRequest) -> Iterator[Replayer]:
    """Replay a recording in the test's directory through controllers, and return a report.

    See `ctrlmgr.testing.replays.Replayer`.
    """
    from ctrlmgr.testing.replays import Replayer

    with Replayer(request.path.parent) as replayer:
        yield replayer


@pytest.fixture(scope="session")
def start_ctrlmgr(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., ServerProcess]]:
    """Start control planes with the given flags of `ctrlmgr serve`.

    Control planes that are still running at the end of the session are stopped.
    """
    from contextlib import ExitStack

    from ctrlmgr.testing.served import ServerProcess

    with ExitStack() as running:

        def start(*flags: str, **environment: Any) -> ServerProcess:
            folder = tmp_path_factory.mktemp("ctrlmgr")
            return running.enter_context(ServerProcess(folder, *flags, **environment))

        yield start


@pytest.fixture
def ctrlmgr_server(start_ctrlmgr: Callable[..., ServerProcess]) -> Iterator[ServerProcess]:
    """Run an empty control plane in memory for one test (see `ctrlmgr.testing.served.ServerProcess`)."""
    server = start_ctrlmgr("--database", "memory:")
    yield server
    server.stop()


@pytest.fixture(scope="session")
def ctrlmgr_shared_server(start_ctrlmgr: Callable[..., ServerProcess]) -> ServerProcess:
    """Run a control plane in memory for all tests of one process (with pytest-xdist, of one worker)."""
    return start_ctrlmgr("--database", "memory:")


@pytest.fixture
def ctrlmgr_namespace(
    ctrlmgr_shared_server: ServerProcess, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OwnNamespace]:
    """Create a namespace for the test on the shared server (see `ctrlmgr.testing.namespaces.OwnNamespace`)."""
    from ctrlmgr.testing.namespaces import OwnNamespace

    with OwnNamespace(ctrlmgr_shared_server, tmp_path_factory.mktemp("namespace")) as namespace:
        yield namespace

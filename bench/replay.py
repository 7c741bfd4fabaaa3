"""The rate at which a recording is replayed through log, caches and controllers.

- `replay into caches` loads a recording into a log in memory, which a controller's caches read; the controller itself
  does not run. The limit is the rate at which `msgspec.json.decode` decodes the same lines into plain dicts. The replay
  and the limit read and decompress the same file, in alternating turns of one run.
- `replay with controllers` runs the endpoints controller and compares its Endpoints at every checkpoint; the goal is
  20,000 events per second. docs/performance.md explains its bottleneck.

Run `python -m bench.replay [RECORDING]`; the default is the large recording beside the repository, or, if that is
missing, the small recording in the repository, which ends before caches are warm. With `--check`, the exit code is 1 if
a goal is missed.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from statistics import median

import msgspec

from bench.report import Claim, report, run
from ctrlmgr import logging
from ctrlmgr.api.resource import ENDPOINTS, PODS, SERVICES
from ctrlmgr.controllers.endpoints.controller import CONTROLLER_NAME
from ctrlmgr.recording.format import RecordingReader
from ctrlmgr.recording.line_reader import lines
from ctrlmgr.recording.replay_stage import open_replay_log
from ctrlmgr.recording.replayed_controllers import CONTROLLERS
from ctrlmgr.recording.replayer import Replay
from ctrlmgr.recording.virtual_clock import ReplayClock

ROOT = Path(__file__).parents[1]
RECORDINGS = (
    ROOT.parent / "shared" / "recordings" / "large.jsonl.gz",
    ROOT / "tests" / "recordings" / "small.jsonl.gz",
)
ROUNDS = 3
EVENTS_A_SECOND = 20_000
OF_DECODING = 0.40


def decode(path: Path) -> float:
    """Measure the limit in lines per second: decompress the file, decode each line, and keep nothing in memory."""
    started_at = time.perf_counter()
    count = 0
    with path.open("rb") as stored:
        for line in lines(stored, compressed=path.suffix == ".gz"):
            msgspec.json.decode(line)
            count += 1
    return count / (time.perf_counter() - started_at)


def load(path: Path) -> float:
    """Measure a replay into caches without controllers, in events per second."""
    clock = ReplayClock()
    replay = Replay(open_replay_log("memory:", clock), clock, controllers={}, caches=(SERVICES, PODS, ENDPOINTS))
    return replay.run(RecordingReader(path)).rate


def replay(path: Path) -> float:
    """Measure a replay with the endpoints controller, in events per second.

    Raises SystemExit if the replayed controller's writes differ from the recording.
    """
    logging.configure(level="info", format="console")  # as the command `ctrlmgr replay` does
    clock = ReplayClock()
    controllers = {CONTROLLER_NAME: CONTROLLERS[CONTROLLER_NAME]}
    found = Replay(open_replay_log("memory:", clock), clock, controllers=controllers).run(RecordingReader(path))
    if found.divergences:
        raise SystemExit(f"{path.name}: {len(found.divergences)} divergences")
    return found.rate


def measure(path: Path) -> list[float]:
    """Return the median rates of `decode`, `load` and `replay`, which run alternately, each time in a new process."""
    measured: dict[Callable[[Path], float], list[float]] = {decode: [], load: [], replay: []}
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn, max_tasks_per_child=1) as alone:
        for _ in range(ROUNDS):
            for function, rates in measured.items():
                rates.append(alone.submit(function, path).result())
    return [median(rates) for rates in measured.values()]


def main(arguments: Sequence[str]) -> int:
    """Run the benchmark and return the exit code."""
    given = [Path(argument) for argument in arguments if not argument.startswith("--")]
    path = next(path for path in (*given, *RECORDINGS) if path.exists())
    decoded, loaded, replayed = measure(path)
    claims = [
        Claim(f"replay into caches, {path.name}", loaded, decoded, OF_DECODING, "events/s"),
        Claim(f"replay with controllers, {path.name}", replayed, EVENTS_A_SECOND, 1.0, "events/s"),
    ]
    return report(claims, arguments)


if __name__ == "__main__":
    run(main, __doc__)

"""Runs rounds from the command line; see the docstring of the package.

If there are violations, the script prints the options that repeat them, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

from ctrlmgr.testing.postgres import PostgresCluster
from tests.robustness.faults import new_seed
from tests.robustness.faults.injections import INJECTIONS, POSTGRESQL, SQLITE, RoundResources
from tests.robustness.faults.machine import FaultUnsupported
from tests.robustness.faults.round import Outcome, Row
from tests.robustness.verdicts import say


def main() -> int:
    """Run rounds with the options of the command line."""
    arguments = _arguments()
    seed = new_seed() if arguments.seed is None else arguments.seed
    names = [name for name in arguments.faults if arguments.database in INJECTIONS[name].databases]
    say(f"seed {seed}, {arguments.rounds} rounds of {', '.join(names)} on {arguments.database}")
    outcomes: list[Outcome] = []
    row, sound = arguments.first, True
    with ExitStack() as stack:
        cluster = stack.enter_context(PostgresCluster()) if arguments.database == POSTGRESQL else None
        rounds = arguments.rounds
        stack.enter_context(suppress(KeyboardInterrupt))  # Ctrl-C prints the results so far
        while rounds > 0:
            name = names[(row - 1) % len(names)]
            played, wrong = _row(row, name, seed, min(rounds, arguments.in_a_row), cluster)
            outcomes += played
            if wrong:
                sound = False
                _tell(wrong, f"--seed {seed} --first {row} --database {arguments.database} --faults {','.join(names)}")
            rounds -= arguments.in_a_row
            row += 1
    for line in table(outcomes):
        say(line)
    say("sound" if sound else "not sound")
    return 0 if sound else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--in-a-row", type=int, default=5, help="rounds of one fault on the same processes")
    parser.add_argument("--first", type=int, default=1, help="the number of the first row, for repeating one")
    parser.add_argument("--seed", type=int, help="for repeating a run, as far as it goes")
    parser.add_argument("--database", choices=(SQLITE, POSTGRESQL), default=SQLITE)
    parser.add_argument("--faults", type=_names, default=list(INJECTIONS), help=f"some of {','.join(INJECTIONS)}")
    return parser.parse_args()


def _names(text: str) -> list[str]:
    names = text.split(",")
    if unknown := set(names) - set(INJECTIONS):
        raise argparse.ArgumentTypeError(f"there is no fault {', '.join(sorted(unknown))}")
    return names


def _row(
    number: int, name: str, seed: int, rounds: int, cluster: PostgresCluster | None
) -> tuple[list[Outcome], list[str]]:
    """Run rounds and print their results; return the results and the violations; the files of rounds with violations
    are kept.
    """
    dice = random.Random(f"{seed} {number}")
    folder = Path(tempfile.mkdtemp(prefix=f"ctrlmgr-fault-{name}-"))
    folder.chmod(0o755)  # a database server that does not run as root has its files there
    began, wrong = time.monotonic(), list[str]()
    row = Row([INJECTIONS[name](RoundResources(folder, dice, cluster))] * rounds, dice.getrandbits(32))
    try:
        wrong = row.play()
    except FaultUnsupported as missing:
        say(f"row {number}: {name}: skipped, {missing}")
    for outcome in row.outcomes:
        acknowledged, recovery = outcome.acknowledged, outcome.recovery
        say(f"{name} ({outcome.told}): {acknowledged} acknowledged, recovered after {recovery:.2f} s")
    say(f"row {number}: {len(row.outcomes)} of {name}, {len(wrong)} complaints, {time.monotonic() - began:.0f} s")
    if wrong:
        wrong.append(f"logs are in {folder}")
        row.outcomes[-1:] = [outcome._replace(wrong=wrong) for outcome in row.outcomes[-1:]]
    else:
        shutil.rmtree(folder, ignore_errors=True)
    return row.outcomes, wrong


def _tell(wrong: Sequence[str], how: str) -> None:
    for sentence in wrong:
        say(f"WRONG {sentence}")
    say(f"repeat it with python -m tests.robustness.faults {how}")


def table(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Yield the lines of a table of the rounds' results."""
    yield "| fault | rounds | complaints | acknowledged writes | recovery, median | worst |"
    yield "|---|---|---|---|---|---|"
    for name in dict.fromkeys(outcome.fault for outcome in outcomes):
        of_one = [outcome for outcome in outcomes if outcome.fault == name]
        times = sorted(outcome.recovery for outcome in of_one)
        wrong, acknowledged = sum(len(each.wrong) for each in of_one), sum(each.acknowledged for each in of_one)
        median, worst = times[len(times) // 2], times[-1]
        yield f"| {name} | {len(of_one)} | {wrong} | {acknowledged} | {median:.2f} s | {worst:.2f} s |"


if __name__ == "__main__":
    sys.exit(main())

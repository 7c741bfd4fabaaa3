"""Tests the invariants of workloads for a long time: `python -m tests.robustness.workloads --rounds 200 [--seed 0]
[--happenings 8]`.

Each round has a separate cluster, with random events that depend on the seed and the number of the round. The script
prints each round with a violation and the round's seed; the exit code is then 1.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Callable
from random import Random

import structlog

from tests.robustness.workloads.workload_cluster import DAEMON_SETS, DEPLOYMENTS, NODES, STATEFUL_SETS, WorkloadCluster


def play_round(seed: int, happenings: int) -> list[str]:
    """Run one round, and return the violations in the round."""
    random = Random(seed)
    world = WorkloadCluster(seed, killed_at_every_write=random.random() < 0.8)
    for _ in range(happenings):
        random.choice(_HAPPENINGS)(world, random)
        world.play()
        if world.breaches:
            break
    return world.breaches


def _roll_deployment(world: WorkloadCluster, random: Random) -> None:
    room = random.choice([(1, 0), (0, 1), (2, 1), ("50%", "50%"), ("100%", 0), (0, 3)])
    world.roll_out(DEPLOYMENTS, random.randint(1, 3), {"maxSurge": room[0], "maxUnavailable": room[1]})
    while random.random() < 0.4:
        world.play(random.randint(1, 15))
        world.roll_out(DEPLOYMENTS, random.randint(1, 3))


def _roll(world: WorkloadCluster, random: Random) -> None:
    world.roll_out(random.choice([STATEFUL_SETS, DAEMON_SETS]), random.randint(1, 3))


def _scale(world: WorkloadCluster, random: Random) -> None:
    world.scale(random.choice([DEPLOYMENTS, STATEFUL_SETS]), random.randint(0, 6))


def _job(world: WorkloadCluster, random: Random) -> None:
    mode = random.choice(["Indexed", "NonIndexed"])
    counts = {"completions": random.randint(1, 6), "parallelism": random.randint(1, 4)}
    world.start_job(**counts, backoffLimit=random.randint(0, 4), completionMode=mode)


def _lose(world: WorkloadCluster, random: Random) -> None:
    world.lose_node(random.choice(NODES))


def _fail(world: WorkloadCluster, random: Random) -> None:
    world.fail_pods(random.randint(1, 4))


_HAPPENINGS: list[Callable[[WorkloadCluster, Random], None]] = [_roll_deployment, _roll, _scale, _job, _lose, _fail]


def main() -> int:
    """Run all rounds, and print the violations."""
    parser = argparse.ArgumentParser(description="workloads under way while everything around them fails")
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--happenings", type=int, default=8)
    given = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    broken = 0
    for number in range(given.rounds):
        breaches = play_round(given.seed + number, given.happenings)
        broken += bool(breaches)
        for each in breaches[:3]:
            sys.stdout.write(f"seed {given.seed + number}: {each}\n")
    sys.stdout.write(f"{given.rounds} rounds, {broken} broke a promise\n")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())

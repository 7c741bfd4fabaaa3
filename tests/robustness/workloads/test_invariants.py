from __future__ import annotations

import hypothesis.strategies as st
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.robustness.workloads.__main__ import play_round
from tests.robustness.workloads.workload_cluster import DAEMON_SETS, DEPLOYMENTS, NODES, STATEFUL_SETS, WorkloadCluster

ROLLED = st.sampled_from([DEPLOYMENTS, STATEFUL_SETS, DAEMON_SETS])
TAGS = st.integers(1, 3)
ROOMS = st.sampled_from([(1, 0), (0, 1), (2, 1), ("50%", "50%"), ("100%", 0), (0, 3)])


class Workloads(RuleBasedStateMachine):
    """Each rule of this state machine is one random event in an idle cluster; the test then runs the cluster until it
    is idle again, and checks the log.
    """

    @initialize(seed=st.integers(0, 2**32), killed=st.booleans())
    def begin(self, seed: int, killed: bool) -> None:
        self.world = WorkloadCluster(seed, killed_at_every_write=killed)

    @rule(tag=TAGS, room=ROOMS, again=st.none() | TAGS, after=st.integers(1, 12))
    def roll_out_a_deployment(self, tag: int, room: tuple[int | str, int | str], again: int | None, after: int) -> None:
        self.world.roll_out(DEPLOYMENTS, tag, {"maxSurge": room[0], "maxUnavailable": room[1]})
        if again is not None:  # the rollout is undone before it ends
            self.world.play(after)
            self.world.roll_out(DEPLOYMENTS, again)
        self.world.play()

    @rule(resource=st.sampled_from([STATEFUL_SETS, DAEMON_SETS]), tag=TAGS)
    def roll_out(self, resource: str, tag: int) -> None:
        self.world.roll_out(resource, tag)
        self.world.play()

    @rule(resource=st.sampled_from([DEPLOYMENTS, STATEFUL_SETS]), replicas=st.integers(0, 5))
    def scale(self, resource: str, replicas: int) -> None:
        self.world.scale(resource, replicas)
        self.world.play()

    @rule(completions=st.integers(1, 4), parallelism=st.integers(1, 3), limit=st.integers(0, 3), indexed=st.booleans())
    def start_a_job(self, completions: int, parallelism: int, limit: int, indexed: bool) -> None:
        mode = "Indexed" if indexed else "NonIndexed"
        self.world.start_job(completions=completions, parallelism=parallelism, backoffLimit=limit, completionMode=mode)
        self.world.play()

    @rule(node=st.sampled_from(NODES))
    def lose_a_node(self, node: str) -> None:
        self.world.lose_node(node)
        self.world.play()

    @rule(count=st.integers(1, 3))
    def fail(self, count: int) -> None:
        self.world.fail_pods(count)
        self.world.play()

    @invariant()
    def nothing_is_broken(self) -> None:
        if hasattr(self, "world"):
            assert self.world.breaches == []


Workloads.TestCase.settings = settings(
    max_examples=6, stateful_step_count=5, deadline=None, suppress_health_check=[*HealthCheck], derandomize=True
)
TestWorkloads = Workloads.TestCase


def test_a_round_of_the_long_run_keeps_the_invariants() -> None:
    assert play_round(1, 3) == []

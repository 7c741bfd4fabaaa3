"""Property tests of corrupted claims: three rounds repair everything that can be repaired, and never remove a claim
that is in use.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from ctrlmgr.api.resource import SERVICES
from ctrlmgr.controllers.repair.address_findings import address_claim
from ctrlmgr.controllers.repair.port_findings import collect_ports, port_claim
from ctrlmgr.controllers.repair.repair_findings import Action, ServiceValue
from ctrlmgr.kinds.allocators.service_ranges import IP_ADDRESSES, NODE_PORTS
from ctrlmgr.testing.builders import a_service
from tests.controllers.repair.cluster import RepairCluster, rounds

NAMES = ("one", "two", "three")
ADDRESSES = [f"10.96.0.{number}" for number in range(5, 10)]
PORTS = range(30001, 30006)

vandalism = st.lists(
    st.one_of(
        st.tuples(st.just("lose"), st.sampled_from([IP_ADDRESSES, NODE_PORTS]), st.integers(0, 4)),
        st.tuples(st.just("leak"), st.sampled_from([IP_ADDRESSES, NODE_PORTS]), st.integers(0, 4)),
        st.tuples(st.just("blame"), st.sampled_from([IP_ADDRESSES, NODE_PORTS]), st.integers(0, 4)),
        st.tuples(st.just("move"), st.sampled_from(NAMES), st.integers(0, 4)),
        st.tuples(st.just("delete"), st.sampled_from(NAMES), st.just(0)),
    ),
    max_size=6,
)


def name_of(resource: Any, index: int) -> str:
    return ADDRESSES[index] if resource == IP_ADDRESSES else str(PORTS[index])


def commit(cluster: RepairCluster, what: str, where: Any, index: int) -> None:
    """Corrupt one object, if the cluster has an object that this step can corrupt."""
    if what in ("move", "delete"):
        service = cluster.find(SERVICES, where, "a")
        if service is None:
            return
        if what == "delete":
            cluster.remove(service)
            return

        def move(fields: dict[str, Any]) -> None:
            fields["spec"] |= {"clusterIP": ADDRESSES[index], "clusterIPs": [ADDRESSES[index]]}
            fields["spec"]["ports"][0]["nodePort"] = PORTS[index]

        cluster.tamper(service, move)
        return
    name = name_of(where, index)
    claim = cluster.find(where, name)
    if what == "leak":
        if claim is None:
            make = address_claim if where == IP_ADDRESSES else port_claim
            cluster.add(make(ServiceValue(name, a_service("gone"))).with_metadata(uid=f"leaked-{name}"))
    elif claim is not None and what == "lose":
        cluster.remove(claim)
    elif claim is not None:
        cluster.tamper(claim, lambda fields: fields["spec"]["parentRef"].update(name="somebody"))


@settings(max_examples=60, deadline=None)
@given(vandalism)
def test_three_rounds_repair_all_repairable_findings(deeds: Sequence[tuple[str, Any, int]]) -> None:
    cluster = RepairCluster()
    for index, name in enumerate(NAMES):
        ports = [{"port": 80, "nodePort": PORTS[index]}]
        cluster.service(name, clusterIP=ADDRESSES[index], type="NodePort", ports=ports)
    for deed in deeds:
        commit(cluster, *deed)
    services = cluster.log.snapshot(SERVICES).objects
    for run, findings in (
        (cluster.repair_addresses, cluster.addresses.findings),
        (cluster.repair_ports, cluster.ports.findings),
    ):
        rounds(run, 3)
        assert {each.action for each in findings()} <= {Action.REPORT}
    assert cluster.log.snapshot(SERVICES).objects == services
    used = {address for each in services for address in each.to_dict()["spec"]["clusterIPs"]}
    used |= {str(port) for each in services for port in collect_ports(each)}
    claims = cluster.claims()
    assert claims.keys() == used
    holders = {f"a/{each.name}" for each in services}
    assert set(claims.values()) <= holders

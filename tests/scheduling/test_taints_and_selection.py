from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ctrlmgr.scheduling.daemon_pod_fit import Fit, FitNode, FitSpec, fit
from ctrlmgr.scheduling.node_selection import NodeSelector
from ctrlmgr.scheduling.taints import Taint, Toleration, first_untolerated

LABELS = {"zone": "a", "cores": "8", "blank": ""}


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        ({"key": "k", "operator": "Equal", "value": "v", "effect": "NoExecute"}, True),
        ({"key": "k", "value": "v"}, True),
        ({"key": "k", "value": "w"}, False),
        ({"key": "k", "operator": "Exists"}, True),
        ({"key": "other", "operator": "Exists"}, False),
        ({"operator": "Exists"}, True),
        ({"operator": "Exists", "effect": "NoSchedule"}, False),
        ({"value": "v"}, True),
        ({"key": "k", "operator": "Whatever", "value": "v"}, False),
    ],
)
def test_a_toleration_matches_taints(toleration: dict[str, Any], tolerated: bool) -> None:
    taint = Taint("k", "v", "NoExecute")
    assert msgspec.convert(toleration, Toleration).tolerates(taint) is tolerated


def test_only_taints_of_the_given_effects_count() -> None:
    taints = [Taint("soft", effect="PreferNoSchedule"), Taint("hard", effect="NoExecute")]
    assert first_untolerated(taints, []) == taints[1]
    assert first_untolerated(taints, [Toleration("hard", "Exists")]) is None
    assert first_untolerated(taints, [], ("PreferNoSchedule",)) == taints[0]


@pytest.mark.parametrize(
    ("term", "matches"),
    [
        ({"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}]}, True),
        ({"matchExpressions": [{"key": "zone", "operator": "NotIn", "values": ["a"]}]}, False),
        ({"matchExpressions": [{"key": "absent", "operator": "NotIn", "values": ["a"]}]}, True),
        ({"matchExpressions": [{"key": "blank", "operator": "Exists"}]}, True),
        ({"matchExpressions": [{"key": "absent", "operator": "DoesNotExist"}]}, True),
        ({"matchExpressions": [{"key": "cores", "operator": "Gt", "values": ["7"]}]}, True),
        ({"matchExpressions": [{"key": "cores", "operator": "Lt", "values": ["8"]}]}, False),
        ({"matchExpressions": [{"key": "zone", "operator": "Gt", "values": ["7"]}]}, False),
        ({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}, True),
        ({"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["n"]}]}, False),
        (
            {
                "matchExpressions": [{"key": "zone", "operator": "Exists"}],
                "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["m"]}],
            },
            False,
        ),
        ({}, False),
    ],
)
def test_a_term_matches_nodes(term: dict[str, Any], matches: bool) -> None:
    selector = msgspec.convert({"nodeSelectorTerms": [term]}, NodeSelector)
    assert selector.matches("n", LABELS) is matches
    either = {"nodeSelectorTerms": [term, {"matchExpressions": [{"key": "zone", "operator": "Exists"}]}]}
    assert msgspec.convert(either, NodeSelector).matches("n", LABELS)


def test_a_selector_without_terms_matches_nothing() -> None:
    assert not NodeSelector([]).matches("n", LABELS)


@pytest.mark.parametrize(
    ("spec", "taints", "expected"),
    [
        ({}, [], Fit(True, True)),
        ({"nodeName": "n"}, [], Fit(True, True)),
        ({"nodeName": "m"}, [], Fit(False, False)),
        ({"nodeSelector": {"zone": "a"}}, [], Fit(True, True)),
        ({"nodeSelector": {"zone": "b"}}, [], Fit(False, False)),
        ({}, [{"key": "k", "effect": "NoSchedule"}], Fit(False, True)),
        ({}, [{"key": "k", "effect": "NoExecute"}], Fit(False, False)),
        ({}, [{"key": "k", "effect": "PreferNoSchedule"}], Fit(True, True)),
        ({"tolerations": [{"operator": "Exists"}]}, [{"key": "k", "effect": "NoExecute"}], Fit(True, True)),
    ],
)
def test_a_daemon_pod_runs_on_eligible_nodes(spec: dict[str, Any], taints: list[dict[str, str]], expected: Fit) -> None:
    node = {"metadata": {"name": "n", "labels": LABELS}, "spec": {"taints": taints}}
    assert fit(msgspec.convert(spec, FitSpec), msgspec.convert(node, FitNode)) == expected

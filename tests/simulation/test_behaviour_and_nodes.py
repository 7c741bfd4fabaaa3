from __future__ import annotations

from pathlib import Path

import pytest

from ctrlmgr.errors import SettingsError
from ctrlmgr.simulation.behaviour import ANNOTATION, Behaviour, Subject, behaviour_for, read, read_rules
from ctrlmgr.simulation.nodes import CAPACITY, new_node, node_status, problems, slowness, templates

NOW = "2026-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("text", "behaviour"),
    [
        ("exit 3 after 20s", Behaviour(exit_code=3, exits_after=20)),
        ("Exit 0", Behaviour(exit_code=0)),
        ("fail 2 times after 500ms", Behaviour(failures=2, exits_after=0.5)),
        ("crash loop", Behaviour(exit_code=1, exits_after=1)),
        ("oom after 1m", Behaviour(exit_code=137, is_oom=True, exits_after=60)),
        ("never ready", Behaviour(never_ready=True)),
        ("ready after 5s; slow pull 10s", Behaviour(ready_after=5, pull_takes=10)),
        ("slow pull", Behaviour(pull_takes=30)),
        ("pull error", Behaviour(pull_fails=True)),
        ("stop after 3s; ignore sigterm", Behaviour(stops_after=3, ignores_stop=True)),
        ("run", Behaviour()),
    ],
)
def test_phrases(text: str, behaviour: Behaviour) -> None:
    assert read(text) == behaviour


def test_an_unknown_phrase_is_refused() -> None:
    with pytest.raises(ValueError, match="'dance' is not a valid phrase; write `exit CODE"):
        read("never ready; dance")


def test_source_of_container_behaviour(tmp_path: Path) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text("- pod: web-*\n  do: never ready\n- image: '*/db*'\n  do: exit 1\n")
    rules = read_rules(path)
    annotations = {f"{ANNOTATION}c": "ready after 2s", f"{ANNOTATION}pod": "slow pull 1s; nonsense"}
    found = behaviour_for(Subject("a", "web-1", "c", "x", annotations=annotations), rules)
    assert found.behaviour == Behaviour(ready_after=2, never_ready=True)
    assert [each.partition(":")[0] for each in found.problems] == [f"{ANNOTATION}pod"]
    assert behaviour_for(Subject("a", "p", "c", "example.com/db:1"), rules).behaviour == Behaviour(exit_code=1)
    assert behaviour_for(Subject("a", "p", "c", "x"), rules).behaviour == Behaviour()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- pod: a\n- do: dance\n", ":1: a rule needs `do`"),
        ("- do: run\n- do: dance\n", ":2: 'dance' is not a valid phrase"),
        ("- do: run\n  colour: red\n", ":2: a rule has no field 'colour'"),
        ("- pod: a\n  do: dance\n", ":2: 'dance' is not a valid phrase"),
        ("do: run\n", ":1: a list of rules is expected"),
        ("- do: [\n", ":2: "),
    ],
)
def test_invalid_rules_are_refused_with_their_line(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text(text)
    with pytest.raises(SettingsError) as refusal:
        read_rules(path)
    assert f"{path}{message}" in str(refusal.value)


def test_the_number_of_nodes_is_configured() -> None:
    assert [each.name for each in templates("3")] == ["node-1", "node-2", "node-3"]
    assert templates("") == []


def test_a_file_configures_nodes(tmp_path: Path) -> None:
    path = tmp_path / "nodes.yaml"
    path.write_text(
        "- name: big\n  zone: a\n  capacity: {cpu: 64}\n  taints: [{key: k, effect: NoSchedule}]\n"
        "- name: small\n  count: 2\n  labels: {disk: ssd}\n"
    )
    big, *small = templates(str(path))
    assert (big.name, big.labels, big.capacity["cpu"]) == ("big", {"topology.kubernetes.io/zone": "a"}, "64")
    assert [each.name for each in small] == ["small-1", "small-2"]
    node = new_node(big)
    assert node["metadata"]["labels"]["kubernetes.io/hostname"] == "big"
    assert node["spec"] == {"taints": [{"key": "k", "effect": "NoSchedule"}]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- zone: a\n", ":1: a node needs a `name`"),
        ("- name: a\n- name: b\n  colour: red\n", ":3: there is no 'colour' in a node"),
        ("- name: A_B\n", ":1: 'A_B' is not a valid node name"),
        ("- name: a\n  capacity: {cpu: lots}\n", ":2: cpu: 'lots' is not a quantity"),
        ("- name: a\n  count: 0\n", ":2: `count` is a whole number"),
        ("- name: a\n  annotations: {simulate.ctrlmgr.io/node: odd}\n", ":2: simulate.ctrlmgr.io/node: 'odd' is not"),
        ("- name: a\n  labels: x\n", ":2: `labels` is a table"),
        ("- name: a\n  taints: [x]\n", ":2: each of `taints`"),
        ("- name: a\n- name: a\n", ":2: two nodes have the name 'a'"),
        (
            "- name: a\n  taints: [{key: x, effect: Nope}]\n",
            ':2: metadata.taints[0].effect: Unsupported value: "Nope": supported values: '
            '"NoSchedule", "PreferNoSchedule", "NoExecute"',
        ),
        ("- name: a\n  labels: {'b d': x}\n", ':2: metadata.labels: Invalid value: "b d": name part must consist of'),
        ("- name: a\n  capacity: {cpu: -1}\n", ':2: status.capacity.cpu: Invalid value: "-1": must be greater than'),
        (f"- name: {'a' * 254}\n", ":1: metadata.name: Invalid value:"),
        ("name: a\n", ":1: a list of nodes is expected"),
    ],
)
def test_invalid_nodes_are_refused_with_their_line(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "nodes.yaml"
    path.write_text(text)
    with pytest.raises(SettingsError) as refusal:
        templates(str(path))
    assert f"{path}{message}" in str(refusal.value)


def test_capacity_of_other_clients_is_kept_and_pressure_is_reported() -> None:
    node = new_node(templates("1")[0])
    node["status"]["capacity"]["example.com/gpu"] = "4"
    node["metadata"]["annotations"] = {"simulate.ctrlmgr.io/node": "Disk pressure"}
    status = node_status(node, "192.0.2.1", NOW)
    assert status["capacity"] == {**CAPACITY, "example.com/gpu": "4"}
    found = {each["type"]: each["status"] for each in status["conditions"]}
    assert found == {"MemoryPressure": "False", "DiskPressure": "True", "PIDPressure": "False", "Ready": "True"}
    again = node_status({**node, "status": status}, "192.0.2.1", "2026-01-01T00:00:10Z", beats=False)
    assert again == status


def test_annotations_of_nodes_are_read() -> None:
    def behaviour_for(text: str) -> dict[str, str]:
        return {"simulate.ctrlmgr.io/node": text}

    assert [slowness(behaviour_for(text)) for text in ("", "slow", "slow 3s; disk pressure", "Slow 500ms")] == [
        0,
        10,
        3,
        0.5,
    ]
    assert problems(behaviour_for("lost; slow 1m; not ready")) == []
    (problem,) = problems(behaviour_for("slow down"))
    assert problem.startswith(
        "simulate.ctrlmgr.io/node: 'slow down' is not a valid phrase; write one of attach error, disk pressure, lost"
    )

"""Tests of the differences of two specs, formatted like Go's internal types."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ctrlmgr.kinds.spec_difference import difference, with_empties, written

CONTAINER = {"name": "c", "image": "i:1", "resources": {"limits": {"memory": "1Gi", "cpu": "1"}}}
POD: dict[str, Any] = {
    "containers": [CONTAINER],
    "serviceAccountName": "default",
    "serviceAccount": "default",
    "hostNetwork": True,
    "securityContext": {"runAsUser": 7},
    "priority": -5,
    "priorityClassName": "low",
}
CHANGED = """\
  "Tolerations": null,
  "HostAliases": null,
  "PriorityClassName": "low",
- "Priority": -5,
+ "Priority": 5,
  "PreemptionPolicy": null,
  "DNSConfig": null,
  "ReadinessGates": null,
"""


def test_a_difference_is_printed_with_context_lines() -> None:
    number = written("PodSpec", POD).splitlines().index(' "Tolerations": null,') + 1
    head, _, lines = difference("PodSpec", POD, {**POD, "priority": 5}).partition("\n")
    assert head == f"@@ -{number},7 +{number},7 @@"
    assert lines == CHANGED


def test_equal_values_have_no_difference() -> None:
    assert difference("PodSpec", POD, {**POD, "serviceAccount": ""}) == "", "it is an older name of the same field"


def test_a_pod_is_printed_with_all_fields_by_their_go_names() -> None:
    pod = json.loads(written("PodSpec", POD))
    assert [*pod][:3] == ["Volumes", "InitContainers", "Containers"]
    assert [*pod][-2:] == ["HostnameOverride", "SchedulingGroup"]
    assert [*pod["SecurityContext"]][:4] == ["HostNetwork", "HostPID", "HostIPC", "ShareProcessNamespace"]
    assert (pod["SecurityContext"]["HostNetwork"], pod["SecurityContext"]["RunAsUser"]) == (True, 7)
    [container] = pod["Containers"]
    assert container["Resources"] == {"Limits": {"cpu": "1", "memory": "1Gi"}, "Requests": None, "Claims": None}
    assert (container["TTY"], container["WorkingDir"], container["Ports"]) == (False, "", None)


@pytest.mark.parametrize(
    ("volume", "name", "shown"),
    [
        ({"secret": {"secretName": "s"}}, "Secret", {"SecretName": "s", "Items": None, "DefaultMode": None}),
        ({"nfs": {"server": "s", "path": "/p"}}, "NFS", {"Server": "s", "Path": "/p", "ReadOnly": False}),
        ({"rbd": {"monitors": ["m"], "image": "i"}}, "RBD", {"CephMonitors": ["m"], "RBDImage": "i", "RadosUser": ""}),
        ({"fc": {"targetWWNs": ["w"]}}, "FC", {"TargetWWNs": ["w"], "Lun": None, "FSType": "", "WWIDs": None}),
        ({"csi": {"driver": "d", "fsType": "x"}}, "CSI", {"Driver": "d", "ReadOnly": None, "FSType": "x"}),
        ({"downwardAPI": {}}, "DownwardAPI", {"Items": None, "DefaultMode": None}),
    ],
)
def test_volumes_have_gos_names(volume: dict[str, Any], name: str, shown: dict[str, Any]) -> None:
    [found] = json.loads(written("PodSpec", {"volumes": [{"name": "v", **volume}]}))["Volumes"]
    assert shown.items() <= found[name].items()
    assert found["Name"] == "v"
    assert all(value is None for other, value in found.items() if other not in ("Name", name))


def test_omitted_probes_ports_and_divisors_have_zero_values() -> None:
    field = {"resourceFieldRef": {"resource": "limits.cpu"}}
    container = {
        "name": "c",
        "env": [{"name": "E", "valueFrom": field}],
        "livenessProbe": {"httpGet": {"path": "/"}},
        "readinessProbe": {"tcpSocket": {"port": 80}},
    }
    [found] = json.loads(written("PodSpec", {"containers": [container]}))["Containers"]
    assert found["Env"][0]["ValueFrom"]["ResourceFieldRef"]["Divisor"] == "0"
    assert found["LivenessProbe"]["HTTPGet"]["Port"] == 0
    assert found["ReadinessProbe"]["TCPSocket"] == {"Port": 80, "Host": ""}


def test_embedded_types_of_other_groups_have_json_names() -> None:
    selector = {"matchLabels": {"a": "<b>"}}
    term = {"labelSelector": selector, "topologyKey": "zone"}
    pod = {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}
    text = written("PodSpec", pod)
    assert '"matchLabels": {\n' in text
    assert "\\u003cb\\u003e" in text, "Go writes JSON that may stand in HTML"
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"accessModes": ["ReadWriteOnce"]}}
    volume = {"name": "v", "ephemeral": {"volumeClaimTemplate": template}}
    [found] = json.loads(written("PodSpec", {"volumes": [volume]}))["Volumes"]
    assert [*found["Ephemeral"]["VolumeClaimTemplate"]] == ["labels", "Spec"]


def test_claims_and_volume_sources_are_compared() -> None:
    once, many = ({"accessModes": [mode]} for mode in ("ReadWriteOnce", "ReadWriteMany"))
    assert '-  "ReadWriteOnce"\n+  "ReadWriteMany"\n' in difference("PersistentVolumeClaimSpec", once, many)
    here, there = {"hostPath": {"path": "/a"}}, {"nfs": {"server": "s", "path": "/b"}}
    assert '- "HostPath": {\n-  "Path": "/a",\n' in difference("PersistentVolumeSource", here, there)


def test_a_volume_lists_its_sources_in_gos_order() -> None:
    [volume] = json.loads(written("PodSpec", {"volumes": [{"name": "v"}]}))["Volumes"]
    names = [*volume]
    assert names[names.index("RBD") : names.index("Cinder") + 1] == ["RBD", "Quobyte", "FlexVolume", "Cinder"]
    assert (len(names), names[-1]) == (31, "Image")


def test_the_group_policy_precedes_the_sysctls() -> None:
    names = [*json.loads(written("PodSpec", {}))["SecurityContext"]]
    assert names[names.index("FSGroup") : names.index("SeccompProfile")] == [
        "FSGroup",
        "FSGroupChangePolicy",
        "Sysctls",
    ]


def test_an_empty_value_differs_from_a_missing_one() -> None:
    sent = {
        "containers": [{**CONTAINER, "env": [], "resources": {"limits": {}}}],
        "tolerations": [],
        "nodeSelector": {},
        "affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": []}},
    }
    decoded = {"containers": [{"name": "c", "resources": {}}], "tolerations": None, "priority": 5}
    found = with_empties(decoded, sent)
    assert found == {
        "containers": [{"name": "c", "env": [], "resources": {"limits": {}}}],
        "tolerations": [],
        "nodeSelector": {},
        "affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": []}},
        "priority": 5,
    }
    lines = [line.strip() for line in written("PodSpec", found).splitlines()]
    assert '"Tolerations": [],' in lines
    assert '"NodeSelector": {},' in lines
    assert '"HostAliases": null,' in lines

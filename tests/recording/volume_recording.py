"""Records volumes and devices: runs `ctrlmgr serve` with simulated nodes, and makes changes with kubectl.

    python -m tests.recording.volume_recording FILE

The recording has a checkpoint after each step, when the cluster is idle. It contains the writes of the controllers of
volumes, resource claims, device taints and protection finalizers.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from ctrlmgr.testing.served import ServerProcess
from tests.scenario_recordings import write

NODES: Final = """
- {name: one, zone: a, devices: {gpu.example.com: [{name: gpu, count: 2}]}}
- {name: two, zone: b, devices: {gpu.example.com: [{name: gpu, count: 2}]}}
"""
GATES: Final = ("--feature-gates", "GenericWorkload=true", "--runtime-config", "scheduling.k8s.io/v1alpha2=true")
_CALM: Final = 6.0
"""The number of seconds without a change after which the cluster is considered idle."""

VOLUMES: Final = """
kind: StatefulSet
apiVersion: apps/v1
metadata: {name: db, namespace: shop}
spec:
  replicas: 2
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      terminationGracePeriodSeconds: 1
      containers: [{name: c, image: postgres, volumeMounts: [{name: data, mountPath: /data}]}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
kind: Pod
apiVersion: v1
metadata: {name: scratch, namespace: shop}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: c, image: nginx, volumeMounts: [{name: data, mountPath: /data}]}]
  volumes:
  - name: data
    ephemeral:
      volumeClaimTemplate:
        spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
"""
CLASSES: Final = """
kind: VolumeAttributesClass
apiVersion: storage.k8s.io/v1
metadata: {name: fast}
driverName: csi.simulate.ctrlmgr.io
parameters: {iops: "100"}
---
kind: PersistentVolumeClaim
apiVersion: v1
metadata: {name: quick, namespace: shop}
spec:
  accessModes: [ReadWriteOnce]
  volumeAttributesClassName: fast
  resources: {requests: {storage: 1Gi}}
---
kind: Pod
apiVersion: v1
metadata: {name: quick, namespace: shop}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: c, image: nginx}]
  volumes: [{name: data, persistentVolumeClaim: {claimName: quick}}]
"""
STATIC: Final = """
kind: PersistentVolume
apiVersion: v1
metadata: {name: old}
spec:
  accessModes: [ReadWriteOnce]
  capacity: {storage: 5Gi}
  hostPath: {path: /data/old}
  storageClassName: manual
  persistentVolumeReclaimPolicy: Retain
---
kind: PersistentVolumeClaim
apiVersion: v1
metadata: {name: old, namespace: shop}
spec: {accessModes: [ReadWriteOnce], storageClassName: manual, resources: {requests: {storage: 2Gi}}}
"""
DEVICES: Final = """
kind: DeviceClass
apiVersion: resource.k8s.io/v1
metadata: {name: gpu}
spec: {selectors: [{cel: {expression: device.driver == 'gpu.example.com'}}]}
---
kind: ResourceClaimTemplate
apiVersion: resource.k8s.io/v1
metadata: {name: one, namespace: shop}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu}}]}}}
---
kind: ResourceClaim
apiVersion: resource.k8s.io/v1
metadata: {name: shared, namespace: shop}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu}}]}}
---
kind: Deployment
apiVersion: apps/v1
metadata: {name: train, namespace: shop}
spec:
  replicas: 2
  selector: {matchLabels: {app: train}}
  template:
    metadata: {labels: {app: train}}
    spec:
      terminationGracePeriodSeconds: 1
      resourceClaims: [{name: gpu, resourceClaimTemplateName: one}]
      containers: [{name: c, image: nginx, resources: {claims: [{name: gpu}]}}]
---
kind: Pod
apiVersion: v1
metadata: {name: user, namespace: shop}
spec:
  terminationGracePeriodSeconds: 1
  resourceClaims: [{name: gpu, resourceClaimName: shared}]
  containers: [{name: c, image: nginx, resources: {claims: [{name: gpu}]}}]
"""
GROUPS: Final = """
kind: PodGroup
apiVersion: scheduling.k8s.io/v1alpha2
metadata: {name: gang, namespace: shop}
spec: {schedulingPolicy: {gang: {minCount: 1}}}
---
kind: Pod
apiVersion: v1
metadata: {name: member, namespace: shop}
spec:
  terminationGracePeriodSeconds: 1
  schedulingGroup: {podGroupName: gang}
  containers: [{name: c, image: nginx}]
"""


class Step(NamedTuple):
    """One step of the recording: objects to apply, and commands of kubectl."""

    name: str
    objects: str = ""
    commands: Sequence[str] = ()


_SHOP: Final = "--namespace shop"
STEPS: Final = (
    Step("namespace", commands=["create namespace shop"]),
    Step("volumes", VOLUMES),
    Step("static", STATIC),
    Step("static claim deleted", commands=[f"delete pvc old {_SHOP}"]),
    Step("expanded", commands=[f"patch pvc data-db-0 {_SHOP} -p SIZE"]),
    Step("scaled down", commands=[f"scale statefulset db --replicas 0 {_SHOP}", f"delete pod scratch {_SHOP}"]),
    Step("claims deleted", commands=[f"delete pvc data-db-0 data-db-1 {_SHOP}"]),
    Step("classes", CLASSES),
    Step("class in use", commands=["delete volumeattributesclass fast --wait=false"]),
    Step("claim in use", commands=[f"delete pvc quick --wait=false {_SHOP}"]),
    Step("class released", commands=[f"delete pod quick {_SHOP}"]),
    Step("devices", DEVICES),
    Step("user deleted", commands=[f"delete pod user {_SHOP}"]),
    Step("device tainted", commands=["TAINT"]),
    Step("devices released", commands=[f"delete deployment train {_SHOP}", f"delete resourceclaim shared {_SHOP}"]),
    Step("group", GROUPS),
    Step("group in use", commands=[f"delete podgroup gang --wait=false {_SHOP}"]),
    Step("group released", commands=[f"delete pod member {_SHOP}"]),
    Step("namespace deleted", commands=["delete namespace shop"]),
)


class Cluster:
    """A server with simulated nodes, and kubectl."""

    def __init__(self, server: ServerProcess) -> None:
        self._server = server

    def kubectl(self, *arguments: str, given: str = "") -> str:
        """Run kubectl, and return its output."""
        program = os.environ.get("CTRLMGR_TEST_KUBECTL") or "kubectl"
        command = [program, "--kubeconfig", str(self._server.kubeconfig), *arguments]
        return subprocess.run(command, input=given, capture_output=True, text=True, check=True).stdout

    def revision(self) -> int:
        return int(json.loads(self.kubectl("get", "--raw", "/api/v1/namespaces"))["metadata"]["resourceVersion"])

    def perform(self, step: Step) -> None:
        if step.objects:
            self.kubectl("apply", "-f", "-", given=step.objects)
        for command in step.commands:
            if command == "TAINT":
                self.taint()
            else:
                size = json.dumps({"spec": {"resources": {"requests": {"storage": "2Gi"}}}})
                self.kubectl(*(size if word == "SIZE" else word for word in command.split()))

    def taint(self) -> None:
        """Taint the first allocated device with the effect NoExecute."""
        claims = self._items("resourceclaims", "--namespace", "shop")
        results = [one for each in claims for one in _results(each)]
        found = min(results, key=lambda each: (each["pool"], each["device"]))
        (published,) = [each for each in self._items("resourceslices") if each["spec"]["pool"]["name"] == found["pool"]]
        devices = published["spec"]["devices"]
        for each in devices:
            if each["name"] == found["device"]:
                each["taints"] = [{"key": "example.com/broken", "effect": "NoExecute"}]
        self.kubectl("replace", "-f", "-", given=json.dumps(published))

    def settle(self) -> int:
        """Wait until the objects have not changed for a while; return the revision of the log."""
        before, since = self._versions(), time.monotonic()
        while time.monotonic() - since < _CALM:
            time.sleep(0.5)
            if (now := self._versions()) != before:
                before, since = now, time.monotonic()
        return self.revision()

    def _versions(self) -> list[str]:
        kinds = "pods,pvc,pv,volumeattachments,resourceclaims,statefulsets,deployments,namespaces"
        items = self._items(kinds, "--all-namespaces")
        return sorted(each["metadata"]["resourceVersion"] for each in items)

    def _items(self, kinds: str, *more: str) -> list[Any]:
        found: list[Any] = json.loads(self.kubectl("get", kinds, *more, "-o", "json"))["items"]
        return found


def _results(claim: dict[str, Any]) -> list[Any]:
    allocation = (claim.get("status") or {}).get("allocation") or {}
    return [*(allocation.get("devices") or {}).get("results", ())]


def record(path: Path) -> None:
    """Perform all steps on a new server, and write the recording."""
    checkpoints = []
    with tempfile.TemporaryDirectory() as directory:
        work = Path(directory)
        (work / "nodes.yaml").write_text(NODES, encoding="utf-8")
        with ServerProcess(work, "--nodes", str(work / "nodes.yaml"), *GATES) as server:
            cluster = Cluster(server)
            for step in STEPS:
                cluster.perform(step)
                checkpoints.append((step.name, cluster.settle()))
        write(f"sqlite:///{work}/ctrlmgr.db", checkpoints, path)


def main() -> None:
    """Write the recording."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("file", metavar="FILE", type=Path)
    record(parser.parse_args().file)


if __name__ == "__main__":
    main()

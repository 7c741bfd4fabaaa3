"""The pods that delete the content of volumes with the reclaim policy Recycle, from templates.

Source: `pkg/volume/plugins.go`, `pkg/volume/util/util.go`, and the plugins of `hostPath` and NFS volumes.
"""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any, Final, NamedTuple

from ctrlmgr.api.quantity import parse
from ctrlmgr.controllers.persistentvolume_binder import Options
from ctrlmgr.controllers.persistentvolume_binder.binder_plans import Fields
from ctrlmgr.errors import SettingsError
from ctrlmgr.settings.configuration_files import read_document

_SCRUB: Final = 'test -e /scrub && find /scrub -mindepth 1 -delete && test -z "$(ls -A /scrub)" || exit 1'
_DEFAULT: Final[Fields] = {
    "metadata": {"generateName": "pv-recycler-", "namespace": "default"},
    "spec": {
        "activeDeadlineSeconds": 60,
        "restartPolicy": "Never",
        "volumes": [{"name": "vol"}],
        "containers": [
            {
                "name": "pv-recycler",
                "image": "registry.k8s.io/build-image/debian-base:bookworm-v1.0.6",
                "command": ["/bin/sh"],
                "args": ["-c", _SCRUB],
                "volumeMounts": [{"name": "vol", "mountPath": "/scrub"}],
            }
        ],
    },
}
_GI: Final = parse("1Gi")


class RecyclerPods(NamedTuple):
    """The template and the time limits of the pods that recycle the volumes of one plugin."""

    template: Fields
    minimum: int
    """The minimum time limit of a pod in seconds."""
    increment: int
    """The seconds for each Gi of a volume."""

    def pod(self, volume: Fields, source: str) -> dict[str, Any]:
        """Return the pod that recycles a volume, whose field `source` names the storage."""
        pod = deepcopy(dict(self.template))
        metadata = {name: each for name, each in (pod.get("metadata") or {}).items() if name != "generateName"}
        spec = pod["spec"]
        size = parse((volume["spec"].get("capacity") or {}).get("storage", "0"))
        spec["activeDeadlineSeconds"] = max(size // _GI * self.increment, self.minimum)
        spec["volumes"][0] = {"name": spec["volumes"][0]["name"], source: _location(volume, source)}
        name = f"recycler-for-{volume['metadata']['name']}"
        return {"kind": "Pod", "apiVersion": "v1", "metadata": {**metadata, "name": name}, "spec": spec}


def _location(volume: Fields, source: str) -> dict[str, Any]:
    named: Fields = volume["spec"][source]
    return {field: named[field] for field in ("server", "path") if field in named}


def recycler_pods(options: Options) -> dict[str, RecyclerPods]:
    """Return the recyclers by the field of a volume's spec; raises `SettingsError` if a template cannot be used."""
    return {
        "hostPath": RecyclerPods(
            _template(options.pv_recycler_pod_template_filepath_hostpath),
            options.pv_recycler_minimum_timeout_hostpath,
            options.pv_recycler_timeout_increment_hostpath,
        ),
        "nfs": RecyclerPods(
            _template(options.pv_recycler_pod_template_filepath_nfs),
            options.pv_recycler_minimum_timeout_nfs,
            options.pv_recycler_increment_timeout_nfs,
        ),
    }


def _template(file: str) -> Fields:
    if not file:
        return _DEFAULT
    pod = read_document(Path(file).expanduser()).value
    if not isinstance(pod, dict) or pod.get("kind") != "Pod" or pod.get("apiVersion") != "v1":
        raise SettingsError(f"{file}: failed decoding file: it must be a Pod of v1")
    volumes = (pod.get("spec") or {}).get("volumes")
    if not volumes or not isinstance(volumes[0], dict) or "name" not in volumes[0]:
        raise SettingsError(f"pod specification ({file}): does not contain any volume(s)")
    return {**pod, "metadata": {"namespace": "default", **(pod.get("metadata") or {})}}

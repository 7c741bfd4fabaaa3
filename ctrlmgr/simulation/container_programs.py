"""Computes a run of a container, from the container's behaviour or from its command.

Guarantees: an exit that the behaviour specifies takes precedence. If the behaviour specifies no exit, the small shell
computes the effects of the container's command. If the container has no command, an image that contains only a shell
exits at once, and an image of a known server runs forever. `Behaviour.unknown` defines how unknown images and commands
end.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from ctrlmgr.simulation.agnhost_servers import IMAGE
from ctrlmgr.simulation.behaviour import Behaviour
from ctrlmgr.simulation.pod_fields import field_of
from ctrlmgr.simulation.shell import Run, run_command
from ctrlmgr.simulation.simulated_files import Files, substituted
from ctrlmgr.simulation.simulated_network import OPEN, Network

_SHELLS: Final = ("busybox", "alpine", "debian", "ubuntu")
_PROXIES: Final = ("nginx", "httpd", "caddy", "haproxy", "traefik", "registry")
_STORES: Final = ("redis", "memcached", "postgres", "mysql", "mariadb", "mongo", "rabbitmq", "etcd")
_SERVERS: Final = frozenset(("pause", IMAGE, *_PROXIES, *_STORES))
"""The images whose containers run forever."""
_MISSING_TAGS: Final = ("nonexistent", "non-existent", "404")
_PRIVATE: Final = ("invalid.registry.k8s.io/", "gcr.io/authenticated-image-pulling/")
_REFERENCE: Final = re.compile(r"\$\(([^)]+)\)")
INDEX: Final = "batch.kubernetes.io/job-completion-index"


def image_name(image: str) -> str:
    """Return the last part of an image's name, without the tag and the digest."""
    return image.rsplit("/", 1)[-1].partition("@")[0].partition(":")[0]


def pulls(image: str) -> bool:
    """Return whether an image can be pulled in the simulation."""
    last = image.rsplit("/", 1)[-1]
    _, _, tag = last.partition(":")
    return tag not in _MISSING_TAGS and "nonexistent" not in tag and not image.startswith(_PRIVATE)


def variables_of(pod: Mapping[str, Any], container: Mapping[str, Any]) -> dict[str, str]:
    """Return those environment variables of a container that depend only on the pod."""
    meta, spec = pod["metadata"], pod["spec"]
    user = _first_user(container, pod)
    found = {"HOSTNAME": str(spec.get("hostname") or meta["name"]), "PATH": "/bin", "UID": str(user)}
    if container.get("workingDir"):
        found["PWD"] = container["workingDir"]
    for each in container.get("env") or ():
        if "value" in each:
            found[each["name"]] = substituted(each["value"], found)
        elif path := ((each.get("valueFrom") or {}).get("fieldRef") or {}).get("fieldPath"):
            found[each["name"]] = field_of(pod, path)
    index = (meta.get("annotations") or {}).get(INDEX)
    if index is not None:
        found.setdefault("JOB_COMPLETION_INDEX", index)
    return found


def _first_user(container: Mapping[str, Any], pod: Mapping[str, Any]) -> int:
    """Return the user id of a container: the id in the container if set, otherwise the id in its pod, otherwise 0."""
    for context in (container.get("securityContext"), pod["spec"].get("securityContext")):
        if context and context.get("runAsUser") is not None:
            return int(context["runAsUser"])
    return 0


def mount_problem(container: Mapping[str, Any], variables: Mapping[str, str]) -> str:
    """Return the reason why a container's volumes cannot be mounted; empty if they can be mounted.

    Variables in `subPathExpr` are expanded.
    """
    for mount in container.get("volumeMounts") or ():
        expression = mount.get("subPathExpr") or ""
        missing = sorted({name for name in _REFERENCE.findall(expression) if not variables.get(name)})
        if missing:
            return f"missing value for {', '.join(missing)}"
        path = substituted(expression, variables)
        if path.startswith("/"):
            return f"error SubPath `{path}` must not be an absolute path"
        if ".." in path.split("/"):
            return f"unable to provision SubPath `{path}`: must not contain '..'"
    return ""


def execute(
    container: Mapping[str, Any],
    behaviour: Behaviour,
    number: int,
    files: Files,
    variables: Mapping[str, str],
    network: Network = OPEN,
) -> Run:
    """Compute the run of a container with this `number`, counted from 0.

    The function changes `files` as the run changes files.
    """
    if behaviour.failures is not None and number < behaviour.failures:
        return Run(ends_at=behaviour.exits_after, code=1)
    if behaviour.exit_code is not None:
        return Run(ends_at=behaviour.exits_after, code=behaviour.exit_code)
    words = [substituted(each, variables) for each in words_of(container)]
    name = image_name(container.get("image", ""))
    if name in _SHELLS:
        if words:
            return run_command(words, files, variables, behaviour.unknown, network)
        return Run() if container.get("stdin") else Run(ends_at=0.0)
    if container.get("command"):
        return run_command(words, files, variables, behaviour.unknown, network)
    ends = None if name in _SERVERS else behaviour.unknown
    return Run() if ends is None else Run(ends.after, ends.code)


def words_of(container: Mapping[str, Any]) -> list[str]:
    """Return the command and arguments of a container."""
    return [*(container.get("command") or ()), *(container.get("args") or ())]


def is_task(pod: Mapping[str, Any], container: Mapping[str, Any]) -> bool:
    """Return whether a container is a task; a task is not restarted after it has succeeded."""
    spec = pod["spec"]
    own = container.get("restartPolicy")
    if own:
        return bool(own != "Always")
    if any(each["name"] == container["name"] for each in spec.get("ephemeralContainers") or ()):
        return False  # users add it to look into the pod
    is_init = any(each["name"] == container["name"] for each in spec.get("initContainers") or ())
    return is_init or (spec.get("restartPolicy") or "Always") != "Always"

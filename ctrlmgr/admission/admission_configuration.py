"""Reads `--admission-control-config-file`: the configuration of each admission plugin.

Guarantees: the error for an invalid file has one line, which contains the position (`settings.configuration_files`).
The file contains either a plugin's configuration itself, or the path of a second file with this configuration. The path
may be relative to the directory of the first file.

Rules come from apiserver's `pkg/admission/config.go`; the format is `AdmissionConfiguration`
(apiserver.config.k8s.io/v1).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml

from ctrlmgr.settings.configuration_files import Document, read_document

_VERSIONS: Final = ("apiserver.config.k8s.io/v1", "apiserver.k8s.io/v1alpha1")


class _Plugin(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    path: str = ""
    configuration: Any = None


class _Configuration(msgspec.Struct, forbid_unknown_fields=True):
    plugins: list[_Plugin] = []


def read_configuration(path: str, known: Collection[str]) -> Mapping[str, Document]:
    """Return the configurations of the plugins that a configuration file contains; an empty dict if no file is given.

    `known` are the names of all plugins. Raises `SettingsError` if the file is invalid.
    """
    if not path:
        return {}
    document = read_document(Path(path).expanduser())
    listed = document.read("AdmissionConfiguration", _VERSIONS, _Configuration).plugins
    found: dict[str, Document] = {}
    for index, plugin in enumerate(listed):
        if plugin.name not in known:
            raise document.refuse(f"there is no admission plugin {plugin.name!r}", "plugins", index, "name")
        if plugin.name in found:
            raise document.refuse(f"{plugin.name} is configured twice", "plugins", index, "name")
        if plugin.configuration is not None:
            node = _inner(document.node, "plugins", index, "configuration")
            found[plugin.name] = Document(document.file, node, plugin.configuration)
        elif plugin.path:
            found[plugin.name] = read_document(document.file.parent / Path(plugin.path).expanduser())
    return found


def _inner(node: yaml.Node | None, *path: str | int) -> yaml.Node | None:
    for step in path:
        if isinstance(step, int):
            assert isinstance(node, yaml.SequenceNode)  # the plugin's configuration was decoded as a list
            node = node.value[step]
        else:
            assert isinstance(node, yaml.MappingNode)  # the plugin's configuration was decoded as a mapping
            node = next(value for key, value in node.value if key.value == step)
    return node

"""Creates a new project: a kind, a controller, passing tests, and the files to install and run the project.

Guarantees: an existing file is never overwritten. The content of the files depends only on the project's name, its API
group and the source of ctrlmgr.
"""

from __future__ import annotations

import keyword
import re
import sys
from collections.abc import Iterator, Mapping
from importlib import resources
from pathlib import Path
from string import Template
from typing import Final

from ctrlmgr.errors import SettingsError
from ctrlmgr.framework.project.install_source import requirement

_NAME: Final = re.compile(r"[a-z]([-a-z0-9]{0,38}[a-z0-9])?")
_GROUP: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+")
_FILES: Final[Mapping[str, str]] = {
    "README.md": "readme.txt",
    "pyproject.toml": "pyproject.txt",
    "$package/__init__.py": "package.txt",
    "$package/operator.py": "operator.txt",
    "tests/conftest.py": "conftest.txt",
    "tests/test_operator.py": "test_operator.txt",
}
"""The path of each file of a project, and its template in this package."""
_DEPLOY: Final[Mapping[str, str]] = {"Dockerfile": "dockerfile.txt", ".dockerignore": "dockerignore.txt"}
"""The path and template of each additional file of a project that will be deployed."""
_MANIFESTS: Final = "deploy/operator.yaml"


def write(folder: Path, name: str, group: str, *, deploy: bool = False) -> list[Path]:
    """Write a project called `name` into `folder`, which is created; return the paths of the project's files.

    If `deploy` is set, the project also contains the files that build and deploy an image.
    """
    words = _words(name, group)
    found = [*_rendered(words, {**_FILES, **(_DEPLOY if deploy else {})})]
    if deploy:
        found = [(path, text + (_text("deploying.txt", words) if path == "README.md" else "")) for path, text in found]
        found.append((_MANIFESTS, ""))
    if there := next((path for path, _ in found if (folder / path).exists()), None):
        raise SettingsError(f"new: {folder / there} exists already")
    for path, text in found:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    if deploy:
        (folder / _MANIFESTS).write_text(_manifests(folder / words["package"] / "operator.py", words), encoding="utf-8")
    return [folder / path for path, _ in found]


def _manifests(file: Path, words: Mapping[str, str]) -> str:
    """Return the Deployment of the operator in a file, and the RBAC objects that the operator needs, as YAML."""
    import yaml

    from ctrlmgr.framework.app_loading import load_app
    from ctrlmgr.framework.app_permissions import declared_rights, deployed, manifests, webhook_rules

    name, app = words["name"], load_app(str(file), origin="new")
    image = f"{name}:0.1.0"
    found = manifests(name, name, declared_rights(app), webhooks=webhook_rules(app))
    found += deployed(name, name, image, f"{words['package']}:app", app)
    return yaml.safe_dump_all(found, sort_keys=False)


def _words(name: str, group: str) -> dict[str, str]:
    package = name.replace("-", "_")
    if not _NAME.fullmatch(name) or keyword.iskeyword(package):
        raise SettingsError(
            f"new: {name!r} is not a valid name of a project; write a name such as `shop` or `corner-shop`"
        )
    if package in sys.stdlib_module_names or package in ("ctrlmgr", "tests"):
        raise SettingsError(f"new: a package called {package} exists already; choose another name")
    if not _GROUP.fullmatch(group) or group.endswith(".k8s.io"):
        raise SettingsError(
            f"new: --group {group}: it is not a group for custom kinds; write a group such as `example.com`"
        )
    kind = "".join(part.capitalize() for part in name.split("-"))
    words = {"name": name, "package": package, "kind": kind, "lower": kind.lower(), "group": group}
    return {**words, "requirement": requirement()}


def _rendered(words: Mapping[str, str], files: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for path, template in files.items():
        yield Template(path).substitute(words), _text(template, words)


def _text(template: str, words: Mapping[str, str]) -> str:
    text = resources.files(__package__).joinpath(template).read_text(encoding="utf-8")
    return Template(text).substitute(words)

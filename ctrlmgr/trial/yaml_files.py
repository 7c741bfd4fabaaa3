"""Reads the YAML files of a trial: scenarios, plans, checks and manifests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import yaml

from ctrlmgr.errors import SettingsError

T = TypeVar("T")


def read_document(file: Path) -> Any:
    """Return the only document of a YAML file, decoded; None if the file is empty.

    Raises `SettingsError` if the file cannot be read as YAML, or has several documents.
    """
    return _read(file, yaml.safe_load)


def read_documents(file: Path) -> list[Any]:
    """Return all documents of a YAML file, decoded; raises `SettingsError` if the file cannot be read as YAML."""
    return _read(file, lambda text: [*yaml.safe_load_all(text)])


def _read(file: Path, load: Callable[[str], T]) -> T:
    try:
        return load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise SettingsError(f"{file}: cannot be read as YAML: {error}") from error

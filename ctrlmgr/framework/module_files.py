"""Imports modules from files such as `website.py`, even if another module has the same name, as for `operator.py`.

Guarantees: a file is imported only once. If another module has the name of a file, importing the file does not replace
that module.
"""

from __future__ import annotations

import importlib
import sys
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Final


def import_file(file: Path) -> ModuleType:
    """Return the module of a file, which may belong to a package; raises the errors that its import raises."""
    file = file.resolve()
    folder, name = _named(file)
    search(str(folder))
    if "." in name or not _is_taken(name, file):
        return importlib.import_module(name)
    return _import_as(_free_name(f"{name}_py", file), file)


def search(folder: str) -> None:
    """Add a folder to the search path for modules, before installed packages but after the standard library.

    Python imports some modules of its standard library late. Because the standard library is searched first, a user's
    file calendar.py does not replace the standard module `calendar`.
    """
    if folder not in sys.path:
        installed = (number for number, each in enumerate(sys.path) if Path(each).name in _INSTALLED)
        sys.path.insert(next(installed, len(sys.path)), folder)


_INSTALLED: Final = ("site-packages", "dist-packages")


def _named(file: Path) -> tuple[Path, str]:
    """Return the folder from which a file can be imported, and the file's dotted module name below that folder."""
    folder, parts = file.parent, [file.stem]
    while (folder / "__init__.py").is_file():
        parts.insert(0, folder.name)
        folder = folder.parent
    return folder, ".".join(parts)


def _is_taken(name: str, file: Path) -> bool:
    """Return whether an import of this name returns another module than the module in this file."""
    if name in sys.stdlib_module_names:
        return True
    try:
        found = find_spec(name)
    except ValueError:  # The module has no specification, like `__main__`.
        return True
    return found is None or found.origin is None or Path(found.origin).resolve() != file


def _free_name(name: str, file: Path) -> str:
    while name in sys.modules and getattr(sys.modules[name], "__file__", "") != str(file):
        name += "_"
    return name


def _import_as(name: str, file: Path) -> ModuleType:
    if name in sys.modules:
        return sys.modules[name]
    specification = spec_from_file_location(name, file)
    assert specification is not None  # the suffix is .py
    assert specification.loader is not None
    module = module_from_spec(specification)
    sys.modules[name] = module  # Annotations of classes are resolved in this module.
    try:
        specification.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module

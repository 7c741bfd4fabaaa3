"""The settings of a process that serves many clusters (`serve --clusters`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ctrlmgr.settings.setting_declaration import Setting
from ctrlmgr.settings.setting_types import DURATION, TEXT


@dataclass(frozen=True, kw_only=True)
class ClusterSettings:
    """The settings of the clusters that a process serves below `/clusters`, in addition to its own.

    `sleep_after` is in seconds.
    """

    directory: Annotated[
        str,
        TEXT,
        Setting(
            "A directory with many clusters, which the server serves below /clusters/NAME in addition to its own. The "
            "path /clusters creates, lists and deletes them. Empty: the server serves only its own cluster.",
            flag="--clusters",
            metavar="DIR",
        ),
    ] = ""
    sleep_after: Annotated[
        float,
        DURATION,
        Setting(
            "The time without a request or a watch after which a cluster below /clusters sleeps: its controllers stop "
            "until the next request.",
            flag="--clusters-sleep-after",
            metavar="DURATION",
        ),
    ] = 300.0

"""The result of an oracle: one thing that the operator did wrong in a run."""

from __future__ import annotations

from typing import NamedTuple


class Finding(NamedTuple):
    """One fault of the operator, as one oracle found it in the log of one run.

    `oracle` is the name of the oracle in kebab-case, such as `end-state`. `message` is one sentence for the user.
    `object` is `kind namespace/name`, or `kind name` for objects without a namespace, or empty if the finding concerns
    no single object. `revision` is the revision of the log that shows the fault best; 0 if there is none.
    """

    oracle: str
    message: str
    object: str = ""
    revision: int = 0

"""`python -m tests.toys` runs `ctrlmgr` with the toy controller."""

from __future__ import annotations

from ctrlmgr.controllers import registry
from tests.toys.greeter import DESCRIPTOR

if __name__ == "__main__":
    registry.add(DESCRIPTOR)

    from ctrlmgr.cli import main  # reads the flags that controllers declare

    main()

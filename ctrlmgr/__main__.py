"""`python -m ctrlmgr` runs the `ctrlmgr` command.

Python searches modules in the working directory first, where a user's file attr.py would replace a library's module.
The `ctrlmgr` command does not search its own modules in the working directory, and loads users' modules with
`framework.module_files`.
"""

import sys

if __name__ == "__main__":
    if not sys.flags.safe_path:
        del sys.path[0]
    from ctrlmgr.cli import main

    main()

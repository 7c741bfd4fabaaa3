"""`python -m ctrlmgr` is the `ctrlmgr` command."""

from ctrlmgr.cli import main

if __name__ == "__main__":
    main()

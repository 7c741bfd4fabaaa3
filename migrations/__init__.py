"""The schema of the event log, version by version. `ctrlmgr migrate` applies them."""

"""The schema of the event log, one migration per version. `ctrlmgr migrate` applies the migrations."""

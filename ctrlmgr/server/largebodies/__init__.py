"""Runs jobs with large bodies in worker processes.

This package starts and ends the worker processes, and answers their queries.

The code that runs in a worker process is in `ctrlmgr.largebodies`.
"""

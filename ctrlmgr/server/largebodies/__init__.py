"""Runs jobs with large bodies in worker processes.

The server starts and ends the worker processes, and answers the worker processes' queries.

The code that runs in a worker process is in `ctrlmgr.largebodies`.
"""

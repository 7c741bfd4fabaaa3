"""Runs jobs with large bodies in worker processes; starts and ends the processes, and answers their queries.

The code that runs in a worker process is in `ctrlmgr.largebodies`.
"""

"""Runs jobs with large bodies in worker processes: starts and ends the processes, and answers their questions.

The code in such a process is `ctrlmgr.largebodies`.
"""

"""Queries on the log: the state at any revision, the author of each change, and its causes.

This package only reads, through the views of `ctrlmgr.eventlog.views`. `database` runs SQL, `questions` are predefined
queries, `past` reads earlier states, `causes` follows causes and effects, `differences` and `blame` compare. Results
are plain values; the command line formats them.
"""

"""Queries on the log: the state at any revision, the author of each change, and its causes.

This package only reads, through the views of `ctrlmgr.eventlog.sql_views`. `database` runs SQL, `questions` are
predefined queries, `historical_state` reads earlier states, `causes` follows causes and effects, `differences` and
`field_authors` compare. Results are plain values; the command line formats them.
"""

"""Queries the log for the state of objects at any revision, and for the author and causes of each change.

This package only reads the log, through the views of `ctrlmgr.eventlog.sql_views`. `database` runs SQL, `questions`
contains predefined queries, `historical_state` reads earlier states, `causes` follows causes and effects, `differences`
and `field_authors` compare states. Results are plain values, which the command line formats.
"""

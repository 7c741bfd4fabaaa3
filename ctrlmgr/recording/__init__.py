"""Recordings are files with a cluster's watch events; a replay runs them through ctrlmgr's log and controllers.

The modules handle an event in this order: `format` reads and writes files, `attribution` finds the author of a change,
`expectation` separates inputs from expected writes, `replayer` runs log, caches and controllers on a `virtual_clock`,
and `report` collects the differences.
"""

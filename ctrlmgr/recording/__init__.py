"""Recordings: files with a cluster's watch events, and their replay through ctrlmgr's log and controllers.

The modules, in the order in which they handle an event: `format` reads and writes files, `attribution` finds the author
of a change, `expectation` separates inputs from expected writes, `replayer` runs log, caches and controllers on a
`virtual_clock`, and `divergence` reports differences.
"""

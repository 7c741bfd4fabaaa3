"""Recordings: a cluster's watch events in a file, replayed through our log and controllers.

In the order in which they handle an event: `format` reads and writes files, `attribution` finds the author of a change,
`expectation` separates inputs from expected writes, `replayer` drives log, caches and controllers on a `virtual_clock`,
and `divergence` reports differences.
"""

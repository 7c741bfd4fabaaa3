"""Tests of the guarantees of the API under load and faults, by recorded histories.

A run has these parts: `serving` starts real `ctrlmgr serve` processes. `traffic`, `readers` and `watchers` send
requests over TLS (`wire`) and record requests and answers in a `History`. Meanwhile, `disturbing` kills, stops and
pauses processes, and compacts the log. `tail` reads the event log, which contains the real order. Then `checks`
compares: pure functions over a history, each with a test that it detects its violation. `python -m
tests.robustness.histories.soak` runs for any time.

The method is that of etcd (tests/robustness). In contrast to etcd's tests, the log gives the order of events, so that
no checker has to search for one.
"""

"""Tests of the API's guarantees under load and faults; the tests record histories and check them.

A run has these parts: `serving` starts real `ctrlmgr serve` processes. `traffic`, `readers` and `watchers` send
requests over TLS (`wire`) and record requests and responses in a `History`. Meanwhile, `disturbing` kills, stops and
pauses server processes, and compacts the log. `tail` reads the event log, which contains the real order of all writes.
Then `checks` compares the history with the log: each check is a pure function over a history, and has a test that it
detects its violation. `python -m tests.robustness.histories.soak` runs such a test for any length of time.

The method is that of etcd's robustness tests (tests/robustness). In contrast to etcd's tests, no checker has to search
for the order of events, because the log contains it.
"""

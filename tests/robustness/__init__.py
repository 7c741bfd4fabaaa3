"""Whether the API keeps its word under load and faults, judged from recorded histories.

In the order of a run: `serving` starts real `ctrlmgr serve` processes; `traffic`, `readers` and `watchers` talk to them
over TLS (`wire`) and record what they asked and were told in a `History`; `disturbing` kills, stops, pauses, compacts
meanwhile; `tail` reads the event log, which is the truth. Then `checks` compare: pure functions over a history, each
with a test of its own that it notices what it is for. `python -m tests.robustness.histories.soak` does it for as long
as wanted.

The method is etcd's (tests/robustness), its log being ours: nobody has to guess in which order things happened.
"""

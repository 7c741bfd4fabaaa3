"""Causes of events without recorded reconciles, inferred from the recording of a real cluster.

`cause_rules.infer` combines the rules; each module contains the rules of some kinds. A rule is a pure function of a
change and of the state before it (`object_history.Past`).
"""

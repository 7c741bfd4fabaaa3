"""Infers causes of events without recorded reconciles, for recordings of real clusters.

`cause_rules.infer` combines the rules; the other modules contain the rules for some kinds. A rule is a pure function of
a change and of the state before the change (`object_history.PastSteps`).
"""

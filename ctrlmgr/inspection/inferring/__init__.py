"""Infers the causes of events without recorded reconciles, for recordings of real clusters.

`cause_rules.infer` applies the rules for a kind; the other modules contain the rules. A rule is a pure function of a
change and of the history before the change (`object_history.PastSteps`).
"""

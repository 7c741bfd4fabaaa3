"""Generates scenarios from the schema of a CustomResourceDefinition.

Guarantees: all functions are pure, and the caller passes the random numbers. Each generated change was checked by the
validation of the API server, with rules: a change that counts as valid is accepted by the server, and a nearly valid
change is refused.

The steps are `first_state` (a valid object), `judged_changes` (changes of one property, with the server's judgement)
and `generated_scenarios` (sequences of changes with a way back to the first state).
"""

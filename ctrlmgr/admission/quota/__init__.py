"""Quotas: measure the usage of objects, decide whether a write fits, and count the used total.

`amounts` calculates. The evaluators (`pods`, `claims`, `services`, `devices`, and `evaluator` for their base class)
measure one object, and `evaluators` lists them. `charging` decides which quotas cover a write, and whether it fits.
"""

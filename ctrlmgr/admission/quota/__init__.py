"""Quotas: measures the usage of objects, decides whether a write fits the quotas, and counts the used amounts.

`quota_amounts` adds and subtracts amounts. The evaluators (`pod_evaluator`, `volume_claim_evaluator`,
`service_evaluator`, `device_evaluator`, and `evaluator` for their base class) measure one object, and `evaluators`
lists them. `charging` decides which quotas cover a write, and whether the write fits these quotas.
"""

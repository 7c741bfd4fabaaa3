"""Quotas: measures the usage of objects, decides whether a write fits the quotas, and counts the used amounts.

`quota_amounts` adds and subtracts amounts. Each evaluator measures one object; `evaluator` is their base class, and
`evaluators` lists `pod_evaluator`, `volume_claim_evaluator`, `service_evaluator` and `device_evaluator`. `charging`
decides which quotas cover a write, and whether the write fits these quotas.
"""

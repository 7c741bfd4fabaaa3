"""Quotas: measure the usage of objects, decide whether a write fits, and count the used total.

`quota_amounts` calculates. The evaluators (`pod_evaluator`, `volume_claim_evaluator`, `service_evaluator`,
`device_evaluator`, and `evaluator` for their base class) measure one object, and `evaluators` lists them. `charging`
decides which quotas cover a write, and whether it fits.
"""

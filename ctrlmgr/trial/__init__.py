"""Runs an operator through the failures of production, and reports what the operator does wrong.

Guarantees:
- Each run has its own control plane with its own log, which is kept. The operator is an unmodified process.
- The operator's requests pass through a proxy. All failures happen in the proxy, so the server needs no changes.
- A plan describes the failures of a run completely. A run with the same plan injects the same failures again.
"""

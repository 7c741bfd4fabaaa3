"""Quotas: measure the usage of objects, decide whether a write fits, and count the used total.

Start reading here: `amounts` calculates. The evaluators (`pods`, `claims`, `services`, `devices`, `counts`) measure one
object, and `evaluators` lists them. `scopes` says which objects a quota covers, `charging` decides on a write,
`counting` recalculates the totals.
"""

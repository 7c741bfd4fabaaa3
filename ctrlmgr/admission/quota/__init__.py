"""Quotas: what objects use, whether that fits into what a namespace may use, and what has been used altogether.

In the order a reader meets them: `amounts` calculates, the evaluators (`pods`, `claims`, `services`, `devices`,
`counts`) say what one object uses, `evaluators` lists them, `scopes` says which objects a quota is about, `charging`
decides on a write, `counting` counts anew.
"""

"""Kinds that users bring: what a CustomResourceDefinition makes of the engine's one way to serve a kind.

In the order in which a definition is read: `resource` makes `Kind`s of it; a kind's `codec` reads and writes its
objects, `shape` says what of them is owned and merged, `strategy` what a write goes through, `columns` what
`kubectl get` shows, `conversion` how one version becomes another.
"""

"""Custom kinds: creates the engine's `Kind`s from CustomResourceDefinitions.

A definition is processed in this order: `resource` creates `Kind`s. A kind's `codec` reads and writes its objects,
`shape` describes ownership and merging of fields, `strategy` handles writes, `columns` is for `kubectl get`, and
`conversion` converts between versions.
"""

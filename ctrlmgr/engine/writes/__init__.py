"""The steps that all writing verbs share.

`plan` is the compiled form of each kind, and `write_context` contains the context of one write. `patching` applies the
patch in a client's body; `body_metadata`, `object_size` and `empty_error_values` validate the body. The module
`attempts` decides a write, appends the decision, and repeats both after a conflict.
"""

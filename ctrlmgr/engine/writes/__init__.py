"""The steps that the writing verbs share.

`plan` is the compiled form of each kind, `write_context` the context of one write. `patching` applies the patch in a
client's body; `body_metadata`, `object_size` and `empty_error_values` validate the body. `attempts` appends a decision,
and repeats it after a lost race.
"""

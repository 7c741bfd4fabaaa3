"""The steps that the writing verbs share.

`plan` is the compiled form of each kind, `request` the context of one write. `bodies` and `patching` decode the
client's body; `metadata`, `sizes` and `as_sent` validate it. `attempts` appends a decision, and repeats it after a lost
race.
"""

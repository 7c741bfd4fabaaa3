"""What the verbs that write share.

`plan` is what is compiled for each kind, `request` the context of one write. `bodies` and `patching` decode what a
client sent; `metadata`, `sizes` and `as_sent` check it. `attempts` appends a decision, and repeats it after a lost
race.
"""

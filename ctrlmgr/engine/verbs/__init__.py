"""What the engine's verbs are made of.

In the order a write meets them: `plan` is what is compiled per kind, `request` what a write carries along; `patching`,
`creation` and `change` make a new state of an object, `deleting` says how one goes; `attempts` appends that, or has it
decided again. `reading` answers from the cacher. Everything is decided on the cacher's state and settled by the log,
whose appends are conditional: who decided on something old is refused there and decides again.
"""

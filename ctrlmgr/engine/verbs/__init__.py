"""The engine's verbs: each module has one function, which contains the steps of the verb in order.

`create`, `update`, `patch`, `apply` and `delete` are the verbs of a request. Update, patch and apply differ in how they
compute the new state, and share the decision in `change`. `recreate` and `canonical_writes` are for controllers.
`read_verbs` reads from the cacher. Each verb is decided on the cacher's state. The log accepts an append only if the
cacher's state was current; otherwise the verb is decided again (`engine.writes.attempts`).
"""

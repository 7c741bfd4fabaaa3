"""The engine's verbs. Each module has one function, which contains the steps of the verb in order.

`create`, `update`, `patch`, `apply` and `delete` are the verbs of a request. Update, patch and apply compute the new
state in different ways, and pass it to the module `change`, which decides these writes. `recreate` and
`canonical_writes` are verbs for controllers. `read_verbs` contains the verbs that read from the cacher. The decision
about a write is based on the cacher's state. The log accepts an append only if the cacher's state was current;
otherwise the write is decided again (`engine.writes.attempts`).
"""

"""Authorization: decides which requests a user may make.

The package does no I/O; the package `ctrlmgr.server` calls authorization webhooks.

| module | content |
|---|---|
| `attributes` | the attributes of a request, on which authorizers base their decisions |
| `authorizer` | the verdicts of authorizers, and the union of several authorizers |
| `rbac/` | RBAC roles and bindings: matching of rules, an index that is updated from the log, and escalation checks |
| `node/` | the Node authorizer, and its graph from objects to nodes |
| `bootstrap/` | the bootstrap roles and bindings, which every cluster contains |
| `impersonation` | impersonation of another user |
"""

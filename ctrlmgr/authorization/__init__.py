"""Authorization: decides which requests a user may make. The package does no I/O; the server calls webhooks for it.

| module | content |
|---|---|
| `attributes` | the attributes of a request, on which authorizers decide |
| `authorizer` | the verdicts of authorizers, and the union of several authorizers |
| `rbac/` | roles and bindings: matching, the index that follows the log, escalation |
| `node/` | the Node authorizer: a graph from objects to nodes |
| `bootstrap/` | the roles and bindings that every cluster contains |
| `impersonation` | impersonation of another user |
"""

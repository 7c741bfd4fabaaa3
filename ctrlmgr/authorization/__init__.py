"""Authorization: which user may do what. It is pure, except for webhooks, whose answers the server fetches.

| module | content |
|---|---|
| `attributes` | the attributes of a request that authorizers decide on |
| `authorizer` | the verdicts of authorizers, and the union of several authorizers |
| `rbac/` | roles and bindings: matching, the index that follows the log, escalation |
| `node/` | the Node authorizer: a graph from objects to nodes |
| `bootstrap/` | the roles and bindings that every cluster has |
| `impersonation` | impersonation of another user |
"""

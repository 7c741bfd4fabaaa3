"""Who may do what. Pure but for the webhook's answers, which the server fetches: nothing here serves or waits.

| module | what it decides |
|---|---|
| `attributes` | what a request is about |
| `authorizer` | what an authorizer answers, and how several are combined |
| `rbac/` | roles and bindings: matching, the index that follows the log, escalation |
| `node/` | what a kubelet may see: a graph from objects to nodes |
| `bootstrap/` | the roles and bindings that every cluster has |
| `impersonation` | acting for another user |
"""

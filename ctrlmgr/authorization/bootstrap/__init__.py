"""The roles and bindings that every cluster has; each start of the server reconciles them.

| module | content |
|---|---|
| `user_roles` | roles for users: `cluster-admin`, `admin`, `edit`, `view`, and the rights of all users |
| `component_roles` | roles of Kubernetes' own programs |
| `controller_roles` | the role of each controller, under its own service account |
| `default_bindings` | the bindings of these roles, and the roles in system namespaces |
| `reconciling` | the changes to existing roles and bindings that differ |

Source: `plugin/pkg/auth/authorizer/rbac/bootstrappolicy` of Kubernetes 1.36, with its default feature gates.
"""

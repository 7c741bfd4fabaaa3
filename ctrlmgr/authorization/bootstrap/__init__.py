"""The bootstrap roles and bindings, which every cluster contains; the server reconciles these objects at each start.

| module | content |
|---|---|
| `user_roles` | roles for users: `cluster-admin`, `admin`, `edit`, `view`, and the rights of all users |
| `component_roles` | roles of Kubernetes' own programs |
| `controller_roles` | the role of each controller's service account |
| `default_bindings` | the bindings of these roles, and the roles in system namespaces |
| `gated_roles` | the roles that need a feature gate which is off by default |
| `reconciling` | decides how to change existing objects that differ from their declarations |

Source: `plugin/pkg/auth/authorizer/rbac/bootstrappolicy` of Kubernetes 1.36.
"""

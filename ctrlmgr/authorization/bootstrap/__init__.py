"""The roles and bindings that every cluster has: declared, and put right at each start.

| module | what it declares |
|---|---|
| `user_roles` | what users may be given: `cluster-admin`, `admin`, `edit`, `view`, what all users may |
| `component_roles` | what Kubernetes' own programs may |
| `controller_roles` | what each controller may, under its own service account |
| `bindings` | who has them, and the roles in system namespaces |
| `reconciling` | what is done about a cluster that has them not, or otherwise |

Source: `plugin/pkg/auth/authorizer/rbac/bootstrappolicy` of Kubernetes 1.36, with its default feature gates.
"""

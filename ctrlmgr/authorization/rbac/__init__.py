"""Role-based access control: rules, roles, bindings, and escalation checks (`plugin/pkg/auth/authorizer/rbac`)."""

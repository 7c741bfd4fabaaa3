"""Role-based access control: rules, who has them, and what may be granted (`plugin/pkg/auth/authorizer/rbac`)."""

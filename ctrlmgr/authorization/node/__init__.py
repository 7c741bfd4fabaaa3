"""The Node authorizer: the rights of kubelets (`plugin/pkg/auth/authorizer/node`)."""

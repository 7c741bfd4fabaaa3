"""What kubelets may do: the Node authorizer (`plugin/pkg/auth/authorizer/node`)."""

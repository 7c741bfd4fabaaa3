"""Service account tokens: Secrets of type `kubernetes.io/service-account-token` hold a token of their account."""

"""The functions that expressions may call, a module for each library of cel-go and Kubernetes."""

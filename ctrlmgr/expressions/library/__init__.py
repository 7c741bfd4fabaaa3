"""The functions for expressions, one module for each library of cel-go and Kubernetes."""

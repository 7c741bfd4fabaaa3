"""The functions for expressions, with one module for each library of cel-go and Kubernetes."""

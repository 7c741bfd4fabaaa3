"""Validation rules of custom resources (`x-kubernetes-validations`): their types, compilation and evaluation."""

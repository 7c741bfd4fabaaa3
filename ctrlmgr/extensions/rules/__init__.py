"""Validation rules of custom resources (`x-kubernetes-validations`): what they may name, compiling, evaluating."""

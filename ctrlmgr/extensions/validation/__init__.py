"""Validates CustomResourceDefinitions; returns every cause of a 422 response, and every warning.

Source: apiextensions-apiserver `pkg/apis/apiextensions/validation`.
"""

from ctrlmgr.extensions.validation.definition_validation import validate_definition, validate_status
from ctrlmgr.extensions.validation.definition_warnings import warnings

__all__ = ["validate_definition", "validate_status", "warnings"]

"""Validation rules that apply to several kinds, with Kubernetes' messages.

The functions of this package do no I/O and have no state.
"""

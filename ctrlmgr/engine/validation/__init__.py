"""Validation rules that several kinds share, with Kubernetes' messages. The functions do no I/O and have no state."""

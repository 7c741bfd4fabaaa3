"""Validation rules that several kinds share, with Kubernetes' messages. They do no I/O and have no state."""

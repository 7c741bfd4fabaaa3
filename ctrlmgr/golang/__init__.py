"""Implements Go's parsing and formatting of numbers, strings, times and URLs, on which Kubernetes' output depends."""

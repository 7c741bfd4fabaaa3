"""Defines the meanings of those flags of Kubernetes' programs that are not settings of ctrlmgr."""

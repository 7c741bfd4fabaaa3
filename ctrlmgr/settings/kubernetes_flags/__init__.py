"""Defines the effect of flags of kube-apiserver and kube-controller-manager that are not settings of ctrlmgr."""

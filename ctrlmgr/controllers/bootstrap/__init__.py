"""Brings a cluster into being: the `kubernetes` service, the system namespaces, the default ServiceCIDR."""

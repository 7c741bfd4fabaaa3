"""Creates the objects that every cluster has: the `kubernetes` Service, system namespaces, the default ServiceCIDR."""

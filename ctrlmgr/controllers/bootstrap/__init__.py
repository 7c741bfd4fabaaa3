"""Creates the objects of every cluster: the Service `kubernetes`, system namespaces, and the default ServiceCIDR."""

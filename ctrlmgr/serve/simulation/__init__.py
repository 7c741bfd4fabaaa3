"""Creates the components of a serving process that simulate nodes: the container runtime and the metrics server."""

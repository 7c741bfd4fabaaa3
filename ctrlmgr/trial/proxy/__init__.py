"""The proxy between the operator and the server, in which perturbations happen."""

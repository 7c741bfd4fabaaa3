"""Publishes the authority's certificate in every namespace as the ConfigMap `kube-root-ca.crt`."""

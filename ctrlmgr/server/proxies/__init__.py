"""Serves the subresource `proxy`, which forwards clients' requests to the addresses of nodes, pods and Services.

`proxy_backends` finds the server of a request, `cluster_proxy` forwards requests, and `simulated_kubelet` serves
simulated nodes.
"""

"""The subresource `proxy` of nodes, pods and services: passes a client's requests on to them.

`proxy_backends` finds the server of a request, `cluster_proxy` passes requests on, and `simulated_kubelet` answers for
simulated nodes.
"""

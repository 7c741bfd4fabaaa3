"""The subresource `proxy` of nodes, pods and Services: passes a client's requests on to their addresses.

`proxy_backends` finds the server of a request, `cluster_proxy` passes requests on, and `simulated_kubelet` answers for
simulated nodes.
"""

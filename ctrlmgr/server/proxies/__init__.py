"""The subresource `proxy` of nodes, pods and Services, which passes clients' requests on to their addresses.

`proxy_backends` finds the server of a request, `cluster_proxy` passes requests on, and `simulated_kubelet` serves
simulated nodes.
"""

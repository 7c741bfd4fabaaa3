"""Connects to kubelets for container logs, exec, attach and port-forward (as in `pkg/kubelet/client`).

`kubelet_urls` maps a request to the kubelet's address, path and query. `kubelet_credentials` creates the TLS contexts
of connections. `proxying` forwards requests to kubelets, and sends the responses to the clients.
"""

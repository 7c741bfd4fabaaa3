"""Connections to kubelets: container logs, exec, attach and port-forward (`pkg/kubelet/client`).

`kubelet_urls` maps a request to the kubelet's address, path and query. `kubelet_credentials` creates the TLS contexts
of connections. `proxying` answers requests with the kubelet's response.
"""

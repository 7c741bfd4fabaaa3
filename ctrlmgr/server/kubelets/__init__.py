"""Connections to kubelets: container logs, exec, attach and port-forward (`pkg/kubelet/client`).

`kubelet_urls` maps a request to the kubelet's address, path and query. `link` connects, keeps idle connections, and
verifies certificates as `credentials` says. `proxying` answers requests with what the kubelet sends.
"""

"""The benchmark of connections to kubelets: `python -m bench.tunnel`."""

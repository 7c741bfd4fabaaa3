"""Go's behaviour that bytes of Kubernetes depend on: how Go reads and writes numbers, text, times and URLs."""

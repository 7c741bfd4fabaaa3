"""Go's behaviour on which Kubernetes' output depends: how Go reads and writes numbers, texts, times and URLs."""

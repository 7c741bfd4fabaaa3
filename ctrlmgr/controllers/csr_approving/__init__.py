"""Certificate approval: kubelets get their clients' certificates when they may ask for them."""

"""Tables: what `kubectl get` shows of a kind, written as data (`printer`), with the ages that it shows (`ages`)."""

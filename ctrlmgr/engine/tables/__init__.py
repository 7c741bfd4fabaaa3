"""Tables: the columns that `kubectl get` shows for a kind, as data (`printer`), and the ages in them (`ages`)."""

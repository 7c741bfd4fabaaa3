"""Tables: the columns that `kubectl get` shows for a kind, as data (`table_printer`), and the ages in them (`ages`)."""

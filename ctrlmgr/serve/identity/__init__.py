"""Creates the certificates and keys of serving processes; processes with one identity directory share them."""

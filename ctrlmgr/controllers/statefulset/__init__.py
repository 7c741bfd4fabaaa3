"""The StatefulSet controller: pods with a name, a place in a row, and storage of their own."""

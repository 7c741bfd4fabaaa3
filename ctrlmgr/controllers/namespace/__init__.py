"""The namespace controller: empties a namespace that is being deleted, then lets it go."""

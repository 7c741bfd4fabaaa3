"""Controllers: a pure `desired_*` each, and a thin Reconciler that writes the difference."""

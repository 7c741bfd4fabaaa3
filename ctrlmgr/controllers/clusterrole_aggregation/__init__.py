"""ClusterRole aggregation: ClusterRoles that have the rules of others, which they select by label."""

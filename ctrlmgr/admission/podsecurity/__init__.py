"""The Pod Security Standards define which pods a namespace's labels allow, by level and version of the policy.

`levels` reads a namespace's labels. `checks_baseline` and `checks_restricted` contain one function for each rule, and
`standards` lists the rules of each version and evaluates them. All functions are pure; the admission plugin is
`plugins.pod_security`.
"""

"""The Pod Security Standards: which pods a namespace's labels let in, by level and by version of the policy.

`levels` reads a namespace's labels, `checks_baseline` and `checks_restricted` hold one function a rule, `standards`
says which rule applies at which version, and `evaluation` runs them. Everything here is pure; the admission plugin is
`plugins.pod_security`.
"""

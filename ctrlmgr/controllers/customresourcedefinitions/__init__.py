"""The controllers of CustomResourceDefinitions, which run in each process that serves the API, as in kube-apiserver.

`status` decides the status of a CustomResourceDefinition, with the names that `accepted_names` grants. The module
`cleanup` decides the next step in the deletion of a CustomResourceDefinition's instances. The modules `status` and
`cleanup` are pure; `controller` writes their results.
"""

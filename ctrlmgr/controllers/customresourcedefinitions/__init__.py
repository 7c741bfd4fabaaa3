"""The controllers of CustomResourceDefinitions, which run in each process that serves the API, as in kube-apiserver.

`status` decides a definition's status, with the names that `accepted_names` grants. `cleanup` decides the deletion of
its instances. Both are pure; `controller` writes.
"""

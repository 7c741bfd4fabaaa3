"""The controllers of CustomResourceDefinitions, which run in each process that serves the API, as in kube-apiserver.

`status` decides a definition's status, with the names that `accepted_names` grants. `cleanup` decides the next step in
the deletion of its instances. `status` and `cleanup` are pure; `controller` writes their results.
"""

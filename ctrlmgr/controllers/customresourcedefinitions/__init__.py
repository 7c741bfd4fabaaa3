"""The controllers of CustomResourceDefinitions, which run beside the API that they serve, as kube-apiserver's do.

`status` says what a definition's status is to be, with the names that `names` gives it;
`cleanup` how its instances go before it does. Both decide purely; `controller` acts.
"""

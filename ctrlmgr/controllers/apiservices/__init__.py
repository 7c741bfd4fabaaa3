"""The controller of APIServices: each version of a group that is served here has one, as in kube-apiserver.

`wanted` says which there should be, `decide` what is to be done about one; `controller` acts.
"""

"""The APIService registration controller: keeps an APIService for each served version of a group, as in kube-apiserver.

`wanted` lists the desired APIServices, `decide` returns the next step for one APIService, and `controller` takes that
step.
"""

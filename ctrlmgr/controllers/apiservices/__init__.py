"""The APIService registration controller: keeps an APIService for each served version of a group, as in kube-apiserver.

`desired_api_services` lists the desired APIServices, `decide` returns the next step for one APIService, and
`controller` performs that step.
"""

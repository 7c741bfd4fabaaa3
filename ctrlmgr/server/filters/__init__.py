"""Contains the filters through which every request passes, as in kube-apiserver.

The filters handle CORS, HSTS, limits of concurrent requests and of time, request ids and spans.
"""

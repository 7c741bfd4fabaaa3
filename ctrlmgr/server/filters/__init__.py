"""Filters around every request, as in kube-apiserver: CORS, HSTS, limits of requests and of time, request ids, spans."""

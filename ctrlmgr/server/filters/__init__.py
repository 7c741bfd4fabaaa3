"""Filters around every request, as in kube-apiserver: CORS, HSTS, limits of number and time, request ids, spans."""

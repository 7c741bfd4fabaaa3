"""The PodCertificateRequest cleaner: deletes old requests for certificates of pods."""

from __future__ import annotations

from ctrlmgr.api.resource import Resource
from ctrlmgr.controllers.descriptor import ControllerDescriptor, NoOptions

DESCRIPTOR = ControllerDescriptor(
    name="podcertificaterequest-cleaner-controller",
    account="podcertificaterequestcleaner",
    does="deletes PodCertificateRequests 15 minutes after their creation",
    watches=(Resource("certificates.k8s.io", "podcertificaterequests"),),
    builder="ctrlmgr.controllers.podcertificaterequest_cleaner.controller:build",
    options=NoOptions,
    feature_gates=("PodCertificateRequest",),
)
"""The declaration of the controller: its name and the function that builds it."""

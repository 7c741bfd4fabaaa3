"""The ClusterTrustBundle publisher: publishes the certificate authority of the API server as a ClusterTrustBundle."""

from __future__ import annotations

from ctrlmgr.api.resource import Resource
from ctrlmgr.controllers.descriptor import ControllerDescriptor, NoOptions

DESCRIPTOR = ControllerDescriptor(
    name="kube-apiserver-serving-clustertrustbundle-publisher-controller",
    account="kube-apiserver-serving-clustertrustbundle-publisher",
    does="publishes the certificate authority of the API server as a ClusterTrustBundle",
    watches=(Resource("certificates.k8s.io", "clustertrustbundles"),),
    owns=(Resource("certificates.k8s.io", "clustertrustbundles"),),
    builder="ctrlmgr.controllers.clustertrustbundle_publisher.controller:build",
    options=NoOptions,
    feature_gates=("ClusterTrustBundle",),
)
"""The declaration of the controller: its name and the function that builds it."""

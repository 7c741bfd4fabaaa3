"""The ClusterRoles of Kubernetes' own programs: kubelets, the scheduler, the controller manager, add-ons.

Source: `bootstrappolicy/policy.go` of Kubernetes 1.36.
"""

from __future__ import annotations

from ctrlmgr.authorization.bootstrap.declaring import Role, rule

COMPONENT_ROLES = (
    Role(
        "system:auth-delegator",
        rule("create", "authentication.k8s.io", "tokenreviews"),
        rule("create", "authorization.k8s.io", "subjectaccessreviews"),
    ),
    Role(
        "system:certificates.k8s.io:certificatesigningrequests:nodeclient",
        rule("create", "certificates.k8s.io", "certificatesigningrequests/nodeclient"),
    ),
    Role(
        "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient",
        rule("create", "certificates.k8s.io", "certificatesigningrequests/selfnodeclient"),
    ),
    Role(
        "system:certificates.k8s.io:kube-apiserver-client-approver",
        rule("approve", "certificates.k8s.io", "signers", names="kubernetes.io/kube-apiserver-client"),
    ),
    Role(
        "system:certificates.k8s.io:kube-apiserver-client-kubelet-approver",
        rule("approve", "certificates.k8s.io", "signers", names="kubernetes.io/kube-apiserver-client-kubelet"),
    ),
    Role(
        "system:certificates.k8s.io:kubelet-serving-approver",
        rule("approve", "certificates.k8s.io", "signers", names="kubernetes.io/kubelet-serving"),
    ),
    Role(
        "system:certificates.k8s.io:legacy-unknown-approver",
        rule("approve", "certificates.k8s.io", "signers", names="kubernetes.io/legacy-unknown"),
    ),
    Role(
        "system:heapster",
        rule("get list watch", "core", "events namespaces nodes pods"),
        rule("get list watch", "extensions", "deployments"),
    ),
    Role(
        "system:kube-aggregator",
        rule("get list watch", "core", "endpoints services"),
    ),
    Role(
        "system:kube-controller-manager",
        rule("create patch update", "core events.k8s.io", "events"),
        rule("create", "coordination.k8s.io", "leases"),
        rule("get update", "coordination.k8s.io", "leases", names="kube-controller-manager"),
        rule("create", "core", "secrets serviceaccounts"),
        rule("delete", "core", "secrets"),
        rule("get", "core", "configmaps namespaces secrets serviceaccounts"),
        rule("update", "core", "secrets serviceaccounts"),
        rule("create", "authentication.k8s.io", "tokenreviews"),
        rule("create", "authorization.k8s.io", "subjectaccessreviews"),
        rule("list watch", "*", "*"),
        rule("create", "core", "serviceaccounts/token"),
    ),
    Role(
        "system:kube-dns",
        rule("list watch", "core", "endpoints services"),
    ),
    Role(
        "system:kube-scheduler",
        rule("create patch update", "core events.k8s.io", "events"),
        rule("create", "coordination.k8s.io", "leases"),
        rule("get list update watch", "coordination.k8s.io", "leases", names="kube-scheduler"),
        rule("create delete deletecollection get list patch update watch", "coordination.k8s.io", "leasecandidates"),
        rule("get list watch", "core", "nodes"),
        rule("delete get list watch", "core", "pods"),
        rule("create", "core", "bindings pods/binding"),
        rule("patch update", "core", "pods/status"),
        rule("get list watch", "core", "replicationcontrollers services"),
        rule("get list watch", "apps extensions", "replicasets"),
        rule("get list watch", "apps", "statefulsets"),
        rule("get list watch", "policy", "poddisruptionbudgets"),
        rule("get list watch", "core", "persistentvolumeclaims persistentvolumes"),
        rule("create", "authentication.k8s.io", "tokenreviews"),
        rule("create", "authorization.k8s.io", "subjectaccessreviews"),
        rule("get list watch", "storage.k8s.io", "csinodes"),
        rule("get list watch", "storage.k8s.io", "volumeattachments"),
        rule("get list watch", "core", "namespaces"),
        rule("get list watch", "storage.k8s.io", "csidrivers"),
        rule("get list watch", "storage.k8s.io", "csistoragecapacities"),
        rule("get list watch", "resource.k8s.io", "deviceclasses"),
        rule("get list patch update watch", "resource.k8s.io", "resourceclaims"),
        rule("get list patch update watch", "resource.k8s.io", "resourceclaims/status"),
        rule("update", "core", "pods/finalizers"),
        rule("get list watch", "resource.k8s.io", "resourceslices"),
        rule("create delete", "resource.k8s.io", "resourceclaims"),
        rule("patch update", "resource.k8s.io", "resourceclaims/binding"),
    ),
    Role(
        "system:kubelet-api-admin",
        rule("get list watch", "core", "nodes"),
        rule("proxy", "core", "nodes"),
        rule("*", "core", "nodes/log nodes/metrics nodes/proxy nodes/stats"),
        rule("*", "core", "nodes/configz nodes/healthz nodes/pods"),
    ),
    Role(
        "system:node",
        rule("create", "authentication.k8s.io", "tokenreviews"),
        rule("create", "authorization.k8s.io", "localsubjectaccessreviews subjectaccessreviews"),
        rule("get list watch", "core", "services"),
        rule("create get list watch", "core", "nodes"),
        rule("patch update", "core", "nodes/status"),
        rule("patch update", "core", "nodes"),
        rule("create patch update", "core events.k8s.io", "events"),
        rule("get list watch", "core", "pods"),
        rule("create delete", "core", "pods"),
        rule("patch update", "core", "pods/status"),
        rule("create", "core", "pods/eviction"),
        rule("get list watch", "core", "configmaps secrets"),
        rule("get", "core", "persistentvolumeclaims persistentvolumes"),
        rule("get", "core", "endpoints"),
        rule("create get list watch", "certificates.k8s.io", "certificatesigningrequests"),
        rule("create delete get patch update", "coordination.k8s.io", "leases"),
        rule("get", "storage.k8s.io", "volumeattachments"),
        rule("create", "core", "serviceaccounts/token"),
        rule("get patch update", "core", "persistentvolumeclaims/status"),
        rule("get list watch", "storage.k8s.io", "csidrivers"),
        rule("create delete get patch update", "storage.k8s.io", "csinodes"),
        rule("get list watch", "node.k8s.io", "runtimeclasses"),
        rule("get", "resource.k8s.io", "resourceclaims"),
        rule("deletecollection", "resource.k8s.io", "resourceslices"),
        rule("get", "core", "serviceaccounts"),
    ),
    Role(
        "system:node-bootstrapper",
        rule("create get list watch", "certificates.k8s.io", "certificatesigningrequests"),
    ),
    Role(
        "system:node-problem-detector",
        rule("get", "core", "nodes"),
        rule("patch", "core", "nodes/status"),
        rule("create patch update", "core events.k8s.io", "events"),
    ),
    Role(
        "system:node-proxier",
        rule("list watch", "core", "endpoints services"),
        rule("get list watch", "core", "nodes"),
        rule("create patch update", "core events.k8s.io", "events"),
        rule("list watch", "networking.k8s.io", "servicecidrs"),
        rule("list watch", "discovery.k8s.io", "endpointslices"),
    ),
    Role(
        "system:persistent-volume-provisioner",
        rule("create delete get list watch", "core", "persistentvolumes"),
        rule("get list update watch", "core", "persistentvolumeclaims"),
        rule("get list watch", "storage.k8s.io", "storageclasses"),
        rule("watch", "core", "events"),
        rule("create patch update", "core events.k8s.io", "events"),
    ),
    Role(
        "system:volume-scheduler",
        rule("get list patch update watch", "core", "persistentvolumes"),
        rule("get list watch", "storage.k8s.io", "storageclasses"),
        rule("get list patch update watch", "core", "persistentvolumeclaims"),
    ),
)
"""ClusterRoles for programs."""

NODE_RULES = next(role.rules for role in COMPONENT_ROLES if role.name == "system:node")
"""The rights of every node, as rules (`NodeRules`)."""

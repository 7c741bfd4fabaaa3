"""The ClusterRoles for users, and the ClusterRoles with the rights of all users.

Source: `bootstrappolicy/policy.go` of Kubernetes 1.36.
"""

from __future__ import annotations

from ctrlmgr.authorization.bootstrap.declaring import Role, rule, urls

USER_ROLES = (
    Role(
        "admin",
        aggregates="admin",
    ),
    Role(
        "cluster-admin",
        rule("*", "*", "*"),
        urls("*", "*"),
    ),
    Role(
        "edit",
        aggregate_to="admin",
        aggregates="edit",
    ),
    Role(
        "system:aggregate-to-admin",
        rule("create", "authorization.k8s.io", "localsubjectaccessreviews"),
        rule(
            "create delete deletecollection get list patch update watch",
            "rbac.authorization.k8s.io",
            "rolebindings roles",
        ),
        aggregate_to="admin",
    ),
    Role(
        "system:aggregate-to-edit",
        rule("get list watch", "core", "pods/attach pods/exec pods/portforward pods/proxy secrets services/proxy"),
        rule("impersonate", "core", "serviceaccounts"),
        rule(
            "create delete deletecollection patch update",
            "core",
            "pods pods/attach pods/exec pods/portforward pods/proxy",
        ),
        rule("create", "core", "pods/eviction"),
        rule(
            "create delete deletecollection patch update",
            "core",
            "configmaps persistentvolumeclaims replicationcontrollers "
            "replicationcontrollers/scale secrets serviceaccounts services services/proxy",
        ),
        rule("create", "core", "serviceaccounts/token"),
        rule("create delete deletecollection patch update", "core events.k8s.io", "events"),
        rule(
            "create delete deletecollection patch update",
            "apps",
            "daemonsets deployments deployments/rollback deployments/scale replicasets "
            "replicasets/scale statefulsets statefulsets/scale",
        ),
        rule("create delete deletecollection patch update", "autoscaling", "horizontalpodautoscalers"),
        rule("create delete deletecollection patch update", "batch", "cronjobs jobs"),
        rule(
            "create delete deletecollection patch update",
            "extensions",
            "daemonsets deployments deployments/rollback deployments/scale ingresses "
            "networkpolicies replicasets replicasets/scale replicationcontrollers/scale",
        ),
        rule("create delete deletecollection patch update", "policy", "poddisruptionbudgets"),
        rule("create delete deletecollection patch update", "networking.k8s.io", "ingresses networkpolicies"),
        rule("create delete deletecollection get list patch update watch", "coordination.k8s.io", "leases"),
        rule("create delete deletecollection patch update", "resource.k8s.io", "resourceclaims resourceclaimtemplates"),
        aggregate_to="edit",
    ),
    Role(
        "system:aggregate-to-view",
        rule(
            "get list watch",
            "core",
            "configmaps endpoints persistentvolumeclaims persistentvolumeclaims/status pods "
            "replicationcontrollers replicationcontrollers/scale serviceaccounts services "
            "services/status",
        ),
        rule(
            "get list watch",
            "core",
            "bindings limitranges namespaces/status pods/log pods/status "
            "replicationcontrollers/status resourcequotas resourcequotas/status",
        ),
        rule("get list watch", "core", "namespaces"),
        rule("get list watch", "core events.k8s.io", "events"),
        rule("get list watch", "discovery.k8s.io", "endpointslices"),
        rule(
            "get list watch",
            "apps",
            "controllerrevisions daemonsets daemonsets/status deployments deployments/scale "
            "deployments/status replicasets replicasets/scale replicasets/status statefulsets "
            "statefulsets/scale statefulsets/status",
        ),
        rule("get list watch", "autoscaling", "horizontalpodautoscalers horizontalpodautoscalers/status"),
        rule("get list watch", "batch", "cronjobs cronjobs/status jobs jobs/status"),
        rule(
            "get list watch",
            "extensions",
            "daemonsets daemonsets/status deployments deployments/scale deployments/status "
            "ingresses ingresses/status networkpolicies replicasets replicasets/scale "
            "replicasets/status replicationcontrollers/scale",
        ),
        rule("get list watch", "policy", "poddisruptionbudgets poddisruptionbudgets/status"),
        rule("get list watch", "networking.k8s.io", "ingresses ingresses/status networkpolicies"),
        rule("get list watch", "resource.k8s.io", "resourceclaims resourceclaims/status resourceclaimtemplates"),
        aggregate_to="view",
    ),
    Role(
        "system:basic-user",
        rule("create", "authorization.k8s.io", "selfsubjectaccessreviews selfsubjectrulesreviews"),
        rule("create", "authentication.k8s.io", "selfsubjectreviews"),
    ),
    Role(
        "system:discovery",
        urls("get", "/api /api/* /apis /apis/* /healthz /livez /openapi /openapi/* /readyz /version /version/"),
    ),
    Role(
        "system:monitoring",
        urls("get", "/flagz /healthz /healthz/* /livez /livez/* /metrics /metrics/slis /readyz /readyz/* /statusz"),
        rule("get", "core", "nodes/metrics"),
    ),
    Role(
        "system:public-info-viewer",
        urls("get", "/healthz /livez /readyz /version /version/"),
    ),
    Role(
        "system:service-account-issuer-discovery",
        urls(
            "get",
            "/.well-known/openid-configuration /.well-known/openid-configuration/ /openid/v1/jwks /openid/v1/jwks/",
        ),
    ),
    Role(
        "view",
        aggregate_to="edit",
        aggregates="view",
    ),
)
"""ClusterRoles for users; `admin`, `edit` and `view` aggregate the rules of other roles."""

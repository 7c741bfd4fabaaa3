"""The HorizontalPodAutoscaler controller: sets a workload's number of replicas according to metrics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ctrlmgr.api.resource import PODS, Resource
from ctrlmgr.controllers.descriptor import ControllerDescriptor
from ctrlmgr.settings.setting_declaration import Setting
from ctrlmgr.settings.setting_types import DURATION, TEXT, decimal, whole

API_SERVICES = Resource("apiregistration.k8s.io", "apiservices")
"""The resource of APIServices; APIServices contain the addresses of the servers that provide metrics."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of the HorizontalPodAutoscaler controller; durations are in seconds."""

    concurrent_horizontal_pod_autoscaler_syncs: Annotated[
        int,
        whole(1),
        Setting(
            "The number of HorizontalPodAutoscalers that are reconciled concurrently.",
            flag="--concurrent-horizontal-pod-autoscaler-syncs",
            metavar="COUNT",
        ),
    ] = 5
    horizontal_pod_autoscaler_sync_period: Annotated[
        float,
        DURATION,
        Setting(
            "The interval at which each HorizontalPodAutoscaler is evaluated.",
            flag="--horizontal-pod-autoscaler-sync-period",
            metavar="DURATION",
        ),
    ] = 15.0
    horizontal_pod_autoscaler_downscale_stabilization: Annotated[
        float,
        DURATION,
        Setting(
            "How far back recommendations count; a scale-down never goes below the highest recommendation of this "
            "period.",
            flag="--horizontal-pod-autoscaler-downscale-stabilization",
            metavar="DURATION",
        ),
    ] = 300.0
    horizontal_pod_autoscaler_tolerance: Annotated[
        float,
        decimal(0),
        Setting(
            "The relative difference between a metric and its target up to which nothing is scaled.",
            flag="--horizontal-pod-autoscaler-tolerance",
            metavar="PART",
        ),
    ] = 0.1
    horizontal_pod_autoscaler_cpu_initialization_period: Annotated[
        float,
        DURATION,
        Setting(
            "The time after the start of a pod in which its CPU usage counts only while the pod is ready.",
            flag="--horizontal-pod-autoscaler-cpu-initialization-period",
            metavar="DURATION",
        ),
    ] = 300.0
    horizontal_pod_autoscaler_initial_readiness_delay: Annotated[
        float,
        DURATION,
        Setting(
            "The time after the start of a pod in which changes of its readiness count as its initial readiness.",
            flag="--horizontal-pod-autoscaler-initial-readiness-delay",
            metavar="DURATION",
        ),
    ] = 30.0
    proxy_client_cert_file: Annotated[
        str,
        TEXT,
        Setting(
            "The client certificate (PEM) that this server, as a front proxy, presents to the servers that APIServices "
            "name. Empty: the server issues one from its front-proxy authority.",
            flag="--proxy-client-cert-file",
            metavar="FILE",
        ),
    ] = ""
    proxy_client_key_file: Annotated[
        str,
        TEXT,
        Setting(
            "The private key (PEM) of the certificate in proxy_client_cert_file.",
            flag="--proxy-client-key-file",
            metavar="FILE",
        ),
    ] = ""


DESCRIPTOR = ControllerDescriptor(
    name="horizontal-pod-autoscaler-controller",
    aliases=("horizontalpodautoscaling",),
    component="horizontal-pod-autoscaler",
    account="horizontal-pod-autoscaler",
    does="scales the targets of HorizontalPodAutoscalers by metrics",
    watches=(Resource("autoscaling", "horizontalpodautoscalers"), PODS, API_SERVICES),
    builder="ctrlmgr.controllers.horizontal_pod_autoscaler.controller:build",
    options=Options,
)
"""The declaration of the controller: its name and the function that builds it."""

"""The settings of connections to kubelets, with the same names as the flags of kube-apiserver."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

from ctrlmgr.settings.setting_declaration import Setting
from ctrlmgr.settings.setting_types import DURATION, LIST, TEXT, whole

ADDRESS_TYPES: Final = ("Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP")
"""The default order of node address types in `preferred_address_types` (`pkg/controlplane/apiserver/options`)."""


@dataclass(frozen=True, kw_only=True)
class KubeletSettings:
    """The settings of the server's connections to kubelets, for logs, exec, attach and port-forward.

    `timeout` is in seconds.
    """

    client_certificate: Annotated[
        str,
        TEXT,
        Setting(
            "The client certificate (PEM) that the server presents to kubelets. Empty: a certificate of the "
            "server's own authority, for the user kube-apiserver-kubelet-client in the group system:masters.",
            flag="--kubelet-client-certificate",
            metavar="FILE",
        ),
    ] = ""
    client_key: Annotated[
        str,
        TEXT,
        Setting(
            "The private key (PEM) of the client certificate for kubelets. Empty: the key is in the file of the "
            "certificate.",
            flag="--kubelet-client-key",
            metavar="FILE",
        ),
    ] = ""
    certificate_authority: Annotated[
        str,
        TEXT,
        Setting(
            "The certificate authority (PEM) that has signed the serving certificates of kubelets. Empty: the "
            "server does not verify these certificates.",
            flag="--kubelet-certificate-authority",
            metavar="FILE",
        ),
    ] = ""
    preferred_address_types: Annotated[
        tuple[str, ...],
        LIST,
        Setting(
            "The types of node addresses, in order of preference; the server connects to the address of the first "
            "type that the node reports.",
            flag="--kubelet-preferred-address-types",
            metavar="LIST",
        ),
    ] = ADDRESS_TYPES
    port: Annotated[
        int,
        whole(1),
        Setting(
            "The kubelet port that is used if a node does not report its port.", flag="--kubelet-port", metavar="PORT"
        ),
    ] = 10250
    timeout: Annotated[
        float,
        DURATION,
        Setting("The maximum time for connecting to a kubelet.", flag="--kubelet-timeout", metavar="DURATION"),
    ] = 5.0

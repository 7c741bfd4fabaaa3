"""The settings of a serving process: its roles, address and limits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ctrlmgr.settings.setting_declaration import Setting
from ctrlmgr.settings.setting_types import ADDRESS, DURATION, LISTEN, NAMES, SWITCH, TEXT, one_of, whole


@dataclass(frozen=True, kw_only=True)
class ServerSettings:
    """The address and role of `serve`; an empty `advertise_address` is detected.

    `role` says whether this process serves the API, may run the controllers, or both. `shutdown_delay` is in seconds.
    `max_reads` and `max_writes` are concurrent requests, `http2_max_streams_per_connection` those of one connection.
    """

    role: Annotated[
        str,
        one_of("all", "api-only", "controllers-only"),
        Setting(
            'The role of this process: "all", "api-only" (it serves the API, other processes run the controllers)'
            ' or "controllers-only" (it is a candidate to run them, and serves only health, metrics and '
            "settings)."
        ),
    ] = "all"
    listen: Annotated[
        str,
        LISTEN,
        Setting(
            "The address on which `serve` listens, with TLS. Port 0 means any free port.",
            flag="--listen",
            metavar="HOST:PORT",
        ),
    ] = "127.0.0.1:6443"
    advertise_address: Annotated[
        str,
        ADDRESS,
        Setting(
            "The address behind the `kubernetes` service, which is also in the certificate. Empty: the address in"
            " `listen`; if that is the wildcard address, the local address of the default route.",
            flag="--advertise-address",
            metavar="IP",
        ),
    ] = ""
    identity_dir: Annotated[
        str,
        TEXT,
        Setting(
            "A directory that all processes of a control plane share or copy. It contains the certificate "
            "authority, the key of service account tokens and the administrator's token, so that a client that "
            "trusts one process trusts all. Missing files are created. Empty: each process has its own files in "
            "data_dir.",
            flag="--identity-dir",
            metavar="DIR",
        ),
    ] = ""
    ready_file: Annotated[
        str,
        TEXT,
        Setting(
            "A file with the server's URL that is written when the process is ready, and removed when it stops. Empty: "
            "none.",
            flag="--ready-file",
            metavar="FILE",
        ),
    ] = ""
    join: Annotated[
        bool,
        SWITCH,
        Setting(
            "Whether this process may serve a data directory that another process serves. false: it is refused.",
            flag="--join",
            metavar="BOOL",
        ),
    ] = False
    public_url: Annotated[
        str,
        TEXT,
        Setting(
            "The URL under which clients reach any live process (a load balancer, or a name with several "
            "addresses). It is in the kubeconfig, and its host is in the certificate. Empty: the address on which"
            " this process listens.",
            flag="--public-url",
            metavar="URL",
        ),
    ] = ""
    certificate_names: Annotated[
        tuple[str, ...],
        NAMES,
        Setting("More names for the serving certificate, for clients that reach this server by another name."),
    ] = ()
    shutdown_delay: Annotated[
        float,
        DURATION,
        Setting(
            "How long /readyz fails before the server stops accepting requests, so that load balancers can react.",
            flag="--shutdown-delay-duration",
            metavar="DURATION",
        ),
    ] = 0.0
    priority_and_fairness: Annotated[
        bool,
        SWITCH,
        Setting(
            "Whether FlowSchemas and PriorityLevelConfigurations decide which requests run, wait or are refused. They"
            " divide max_reads + max_writes seats.",
            flag="--enable-priority-and-fairness",
        ),
    ] = True
    max_reads: Annotated[
        int,
        whole(0),
        Setting(
            "Without priority and fairness, the maximum number of concurrent reads; further requests are refused with"
            " 429. 0: any number.",
            flag="--max-requests-inflight",
        ),
    ] = 400
    max_writes: Annotated[int, whole(0), Setting("The same for writes.", flag="--max-mutating-requests-inflight")] = 200
    http2_max_streams_per_connection: Annotated[
        int,
        whole(1),
        Setting(
            "The maximum number of concurrent requests of one HTTP/2 connection, including watches.",
            flag="--http2-max-streams-per-connection",
            metavar="N",
        ),
    ] = 100
    disable_http2_serving: Annotated[
        bool,
        SWITCH,
        Setting(
            "Whether only HTTP/1.1 is served, with one connection per watch.",
            flag="--disable-http2-serving",
            metavar="BOOL",
        ),
    ] = False
    profiling: Annotated[
        bool,
        SWITCH,
        Setting(
            "Whether /debug/profile and /debug/threads are served.",
            flag="--profiling",
            metavar="BOOL",
        ),
    ] = True
    feature_gates: Annotated[
        tuple[str, ...],
        NAMES,
        Setting(
            "The feature gates that have another state than by default, as NAME=true or NAME=false. AllAlpha and"
            " AllBeta stand for the gates of their stage.",
            flag="--feature-gates",
            metavar="NAME=BOOL",
        ),
    ] = ()

    enable_aggregator_routing: Annotated[
        bool,
        SWITCH,
        Setting(
            "Whether a request for an extension server goes to an endpoint of its Service. false: to the Service's "
            "cluster address, which needs a proxy on this machine.",
            flag="--enable-aggregator-routing",
            metavar="BOOL",
        ),
    ] = True
    aggregator_reject_forwarding_redirect: Annotated[
        bool,
        SWITCH,
        Setting(
            "Whether a redirect of an extension server is answered with 502. false: it is passed on to the client.",
            flag="--aggregator-reject-forwarding-redirect",
            metavar="BOOL",
        ),
    ] = True

    @property
    def address(self) -> tuple[str, int]:
        """The host (an IPv6 address without brackets) and the port."""
        host, _, port = self.listen.rpartition(":")
        return host.strip("[]"), int(port)

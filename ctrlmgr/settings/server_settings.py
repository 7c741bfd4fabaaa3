"""The settings of a serving process: its roles, address and limits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ctrlmgr.settings.setting_declaration import Setting
from ctrlmgr.settings.setting_types import ADDRESS, DURATION, LISTEN, NAMES, SWITCH, TEXT, decimal, one_of, whole


@dataclass(frozen=True, kw_only=True)
class ServerSettings:
    """The settings of a serving process: its address, role and limits.

    If `advertise_address` is empty, the server detects its address.

    `role` says whether this process serves the API, may run the controllers, or both. `shutdown_delay` is in seconds.
    `max_reads` and `max_writes` limit the concurrent requests of all clients together.
    `http2_max_streams_per_connection` limits the concurrent requests of one connection.
    """

    role: Annotated[
        str,
        one_of("all", "api-only", "controllers-only"),
        Setting(
            'The role of this process: "all", "api-only" or "controllers-only". An "api-only" process serves the '
            'API, and leaves the controllers to other processes. A "controllers-only" process may be elected to '
            "run the controllers, and serves only health, metrics and settings."
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
            "The address of the `kubernetes` service's endpoint, which is also in the serving certificate. Empty: "
            "the address in `listen`; if that is the wildcard address, the local address of the default route.",
            flag="--advertise-address",
            metavar="IP",
        ),
    ] = ""
    identity_dir: Annotated[
        str,
        TEXT,
        Setting(
            "A directory that all processes of a control plane share or copy. The directory contains the "
            "certificate authority, the key of service account tokens and the administrator's token, so that a "
            "client that trusts one process trusts all. Missing files are created. Empty: each process has its own "
            "files in data_dir.",
            flag="--identity-dir",
            metavar="DIR",
        ),
    ] = ""
    ready_file: Annotated[
        str,
        TEXT,
        Setting(
            "The path of a file with the server's URL, which is written when the process is ready, and removed "
            "when it stops. Empty: no file.",
            flag="--ready-file",
            metavar="FILE",
        ),
    ] = ""
    join: Annotated[
        bool,
        SWITCH,
        Setting(
            "Whether this process may start with a data directory that another process already serves. false: the "
            "process refuses to start.",
            flag="--join",
            metavar="BOOL",
        ),
    ] = False
    public_url: Annotated[
        str,
        TEXT,
        Setting(
            "The URL under which clients reach any live process (a load balancer, or a name with several "
            "addresses). The URL is in the kubeconfig, and its host is in the certificate. Empty: the address on "
            "which this process listens.",
            flag="--public-url",
            metavar="URL",
        ),
    ] = ""
    external_hostname: Annotated[
        str,
        TEXT,
        Setting(
            "The host, with a port if it differs from the server's, in URLs that the server gives to clients, such as "
            "the jwks_uri of its service account issuer. The host is also in the serving certificate. Empty: the "
            "advertised address.",
            flag="--external-hostname",
            metavar="HOST[:PORT]",
        ),
    ] = ""
    certificate_names: Annotated[
        tuple[str, ...],
        NAMES,
        Setting("Additional names in the serving certificate, for clients that use another name for this server."),
    ] = ()
    shutdown_delay: Annotated[
        float,
        DURATION,
        Setting(
            "How long the server continues to accept requests before it stops, while /readyz already fails, so "
            "that load balancers can react.",
            flag="--shutdown-delay-duration",
            metavar="DURATION",
        ),
    ] = 0.0
    shutdown_send_retry_after: Annotated[
        bool,
        SWITCH,
        Setting(
            "Whether a stopping server listens until its running requests have ended, and answers new requests with "
            "429 and Retry-After. false: it refuses new connections, and answers requests of connected clients for "
            "half a second.",
            flag="--shutdown-send-retry-after",
            metavar="BOOL",
        ),
    ] = False
    shutdown_watch_termination_grace_period: Annotated[
        float,
        DURATION,
        Setting(
            "The maximum duration for which a stopping server ends watches one after another, so that not all clients "
            "reconnect at once. 0: all watches end at once.",
            flag="--shutdown-watch-termination-grace-period",
            metavar="DURATION",
        ),
    ] = 0.0
    livez_grace_period: Annotated[
        float,
        DURATION,
        Setting(
            "How long after its start the server answers /livez as if its start hooks had finished. Later, /livez "
            "fails until they have finished.",
            flag="--livez-grace-period",
            metavar="DURATION",
        ),
    ] = 0.0
    permit_port_sharing: Annotated[
        bool,
        SWITCH,
        Setting(
            "Whether another process of the same user may listen on the same port (SO_REUSEPORT). The kernel "
            "distributes connections among the processes.",
            flag="--permit-port-sharing",
            metavar="BOOL",
        ),
    ] = False
    request_timeout: Annotated[
        float,
        DURATION,
        Setting(
            "The maximum duration of a request; a request that takes longer is answered with 504. A client can ask "
            "for less with ?timeout=. Watches, logs, proxied requests and connections to containers are not limited.",
            flag="--request-timeout",
            metavar="DURATION",
        ),
    ] = 60.0
    min_request_timeout: Annotated[
        int,
        whole(0),
        Setting(
            "The minimum number of seconds for which a watch lasts if its client gives no timeoutSeconds. The "
            "duration is random between this and twice this number.",
            flag="--min-request-timeout",
            metavar="SECONDS",
        ),
    ] = 1800
    priority_and_fairness: Annotated[
        bool,
        SWITCH,
        Setting(
            "Whether FlowSchemas and PriorityLevelConfigurations decide which requests run, wait or are refused. "
            "The priority levels share max_reads + max_writes seats.",
            flag="--enable-priority-and-fairness",
        ),
    ] = True
    max_reads: Annotated[
        int,
        whole(0),
        Setting(
            "The maximum number of concurrent read requests, if priority and fairness are off; further reads are "
            "refused with 429. 0: no limit.",
            flag="--max-requests-inflight",
        ),
    ] = 400
    max_writes: Annotated[
        int,
        whole(0),
        Setting(
            "The maximum number of concurrent write requests, if priority and "
            "fairness are off; further writes are refused with 429. 0: no "
            "limit.",
            flag="--max-mutating-requests-inflight",
        ),
    ] = 200
    http2_max_streams_per_connection: Annotated[
        int,
        whole(1),
        Setting(
            "The maximum number of concurrent requests, including watches, of one HTTP/2 connection.",
            flag="--http2-max-streams-per-connection",
            metavar="N",
        ),
    ] = 100
    disable_http2_serving: Annotated[
        bool,
        SWITCH,
        Setting(
            "Whether the server offers only HTTP/1.1, so that each watch needs a separate connection.",
            flag="--disable-http2-serving",
            metavar="BOOL",
        ),
    ] = False
    profiling: Annotated[
        bool,
        SWITCH,
        Setting(
            "Whether the server serves /debug/profile and /debug/threads.",
            flag="--profiling",
            metavar="BOOL",
        ),
    ] = True
    tracing_config_file: Annotated[
        str,
        TEXT,
        Setting(
            "A file with the configuration of tracing (YAML or JSON, TracingConfiguration of "
            "apiserver.config.k8s.io/v1). Without it, the server records no spans.",
            flag="--tracing-config-file",
            metavar="FILE",
        ),
    ] = ""
    feature_gates: Annotated[
        tuple[str, ...],
        NAMES,
        Setting(
            "Feature gates that are switched on or off against their default, as NAME=true or NAME=false. AllAlpha "
            "and AllBeta stand for all gates of that stage.",
            flag="--feature-gates",
            metavar="NAME=BOOL",
        ),
    ] = ()
    runtime_config: Annotated[
        tuple[str, ...],
        NAMES,
        Setting(
            "Versions of API groups that are switched on or off against their default, as GROUP/VERSION=BOOL or "
            "v1=BOOL. GROUP/VERSION/RESOURCE=BOOL switches a single resource. api/alpha, api/beta, api/ga and api/all "
            "stand for many versions. Most kinds of versions that are not served by default also need a feature gate.",
            flag="--runtime-config",
            metavar="KEY=BOOL",
        ),
    ] = ()

    enable_aggregator_routing: Annotated[
        bool,
        SWITCH,
        Setting(
            "Whether the server sends a request for an extension server to an endpoint of its Service. false: the "
            "server sends it to the Service's cluster address, which needs a service proxy (kube-proxy) on this "
            "machine.",
            flag="--enable-aggregator-routing",
            metavar="BOOL",
        ),
    ] = True
    aggregator_reject_forwarding_redirect: Annotated[
        bool,
        SWITCH,
        Setting(
            "Whether the server answers 502 if an extension server responds with a redirect. false: the client "
            "receives the redirect.",
            flag="--aggregator-reject-forwarding-redirect",
            metavar="BOOL",
        ),
    ] = True

    peer_ca_file: Annotated[
        str,
        TEXT,
        Setting(
            "Certificate authorities (PEM) of the other processes that serve this log. With it, the server forwards a "
            "request for a resource that only another process serves to that process. Empty: the server does not "
            "forward requests.",
            flag="--peer-ca-file",
            metavar="FILE",
        ),
    ] = ""
    peer_advertise_ip: Annotated[
        str,
        ADDRESS,
        Setting(
            "The address to which other processes that serve this log forward requests; it needs peer_advertise_port. "
            "Empty: the advertised address.",
            flag="--peer-advertise-ip",
            metavar="IP",
        ),
    ] = ""
    peer_advertise_port: Annotated[
        str,
        TEXT,
        Setting(
            "The port to which other processes that serve this log forward requests; it needs peer_advertise_ip. "
            "Empty: the port on which the server listens.",
            flag="--peer-advertise-port",
            metavar="PORT",
        ),
    ] = ""

    cors_allowed_origins: Annotated[
        tuple[str, ...],
        NAMES,
        Setting(
            "Regular expressions for the origins of web pages that may read the server's responses (CORS). Each "
            "must match the whole host, as '^https://console\\.example\\.com$' does. Empty: only the server's own "
            "page may.",
            flag="--cors-allowed-origins",
            metavar="REGEX",
        ),
    ] = ()
    strict_transport_security_directives: Annotated[
        tuple[str, ...],
        NAMES,
        Setting(
            "The directives of the header Strict-Transport-Security in every response: max-age=SECONDS, "
            "includeSubDomains, preload. Empty: no such header.",
            flag="--strict-transport-security-directives",
            metavar="DIRECTIVE",
        ),
    ] = ()
    goaway_chance: Annotated[
        float,
        decimal(0, 0.02),
        Setting(
            "The probability (0 to 0.02) with which a response asks its HTTP/2 client to open a new connection, so "
            "that a load balancer can choose another server. 0: never.",
            flag="--goaway-chance",
            metavar="NUMBER",
        ),
    ] = 0.0

    @property
    def address(self) -> tuple[str, int]:
        """Return the host (an IPv6 address without brackets) and the port of a listen address."""
        host, _, port = self.listen.rpartition(":")
        return host.strip("[]"), int(port)

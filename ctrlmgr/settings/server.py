"""The settings of a serving process: its roles, address and limits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ctrlmgr.settings.declaration import Setting
from ctrlmgr.settings.kinds import ADDRESS, DURATION, LISTEN, NAMES, SWITCH, TEXT, one_of, whole


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
            'The roles of this process: "all", "api-only" (it serves, others run the controllers) or '
            '"controllers-only" (it is a candidate for running them, and answers nothing but health, metrics '
            "and settings)."
        ),
    ] = "all"
    listen: Annotated[
        str,
        LISTEN,
        Setting("Where `serve` answers, over TLS. Port 0 takes any free one.", flag="--listen", metavar="HOST:PORT"),
    ] = "127.0.0.1:6443"
    advertise_address: Annotated[
        str,
        ADDRESS,
        Setting(
            "The address that the `kubernetes` service leads to, and one of the names in the certificate. "
            "Empty: where `listen` is, or the address that the default route starts from when that is every "
            "address.",
            flag="--advertise-address",
            metavar="IP",
        ),
    ] = ""
    identity_dir: Annotated[
        str,
        TEXT,
        Setting(
            "A directory that the processes of one control plane share, or have a copy of: with the authority, the key "
            "of service accounts' tokens and the administrator's token, so that a client that trusts one of them "
            "trusts all. Missing files are created. Empty: each has its own, in data_dir.",
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
            "The URL under which clients reach whichever process is alive (a balancer, a name with several addresses): "
            "what the kubeconfig says, and a name in the certificate. Empty: where this process listens.",
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
            "How long /readyz fails before the server stops taking requests, so that load balancers can turn away."
        ),
    ] = 0.0
    max_reads: Annotated[
        int, whole(1), Setting("How many reads are worked on at a time; further requests are refused with 429.")
    ] = 400
    max_writes: Annotated[int, whole(1), Setting("The same for writes.")] = 200
    http2_max_streams_per_connection: Annotated[
        int,
        whole(1),
        Setting("How many requests one connection may have under way that speaks HTTP/2, watches included."),
    ] = 100
    disable_http2_serving: Annotated[
        bool, SWITCH, Setting("Whether HTTP/1.1 alone is spoken, with a connection for each watch.")
    ] = False

    @property
    def address(self) -> tuple[str, int]:
        """The host (an IPv6 address without brackets) and the port."""
        host, _, port = self.listen.rpartition(":")
        return host.strip("[]"), int(port)

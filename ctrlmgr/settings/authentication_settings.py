"""The settings of authentication, under kube-apiserver's names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ctrlmgr.settings.setting_declaration import Setting
from ctrlmgr.settings.setting_types import DURATION, NAMES, SWITCH, TEXT, one_of


@dataclass(frozen=True, kw_only=True)
class AuthenticationSettings:
    """The authentication of requests to `serve`."""

    token_auth_file: Annotated[
        str,
        TEXT,
        Setting(
            'A file of bearer tokens, each line `token,user,uid,"group,group"` (mode 0600). Empty: tokens.csv '
            "in data_dir, if there is one. The administrator's token is in the kubeconfig that `serve` writes "
            "into data_dir.",
            flag="--token-auth-file",
            metavar="FILE",
            formerly="server.tokens",
        ),
    ] = ""
    client_ca_file: Annotated[
        str,
        TEXT,
        Setting(
            "Certificate authorities (PEM) for client certificates, in addition to the server's own: the common "
            "name is the user, organizations are groups. The server reloads the file when it changes.",
            flag="--client-ca-file",
            metavar="FILE",
        ),
    ] = ""
    anonymous_auth: Annotated[
        bool,
        SWITCH,
        Setting(
            "Whether requests without credentials are accepted, as system:anonymous. Their rights decide which "
            "requests are allowed.",
            flag="--anonymous-auth",
            metavar="BOOL",
        ),
    ] = True
    config: Annotated[
        str,
        TEXT,
        Setting(
            "A file (YAML or JSON, AuthenticationConfiguration of apiserver.config.k8s.io/v1) that lists trusted "
            "issuers of JSON web tokens (OpenID Connect), and the paths that allow anonymous requests; "
            "anonymous_auth is then ignored. The server reloads the file when it changes.",
            flag="--authentication-config",
            metavar="FILE",
        ),
    ] = ""
    token_webhook_config_file: Annotated[
        str,
        TEXT,
        Setting(
            "A kubeconfig whose current context names a server that verifies unknown tokens (TokenReview). Empty:"
            " none.",
            flag="--authentication-token-webhook-config-file",
            metavar="FILE",
        ),
    ] = ""
    token_webhook_version: Annotated[
        str,
        one_of("v1", "v1beta1"),
        Setting(
            "The version of authentication.k8s.io in requests to that server.",
            flag="--authentication-token-webhook-version",
            metavar="VERSION",
        ),
    ] = "v1beta1"
    token_webhook_cache_ttl: Annotated[
        float,
        DURATION,
        Setting(
            "How long such a response is cached.",
            flag="--authentication-token-webhook-cache-ttl",
            metavar="DURATION",
        ),
    ] = 120.0
    enable_bootstrap_token_auth: Annotated[
        bool,
        SWITCH,
        Setting(
            "Whether Secrets of type bootstrap.kubernetes.io/token in kube-system are credentials.",
            flag="--enable-bootstrap-token-auth",
            metavar="BOOL",
        ),
    ] = False
    api_audiences: Annotated[
        tuple[str, ...],
        NAMES,
        Setting(
            "The audiences of this server: a token that names only other audiences is refused. Empty: its service"
            " account issuers.",
            flag="--api-audiences",
            metavar="LIST",
        ),
    ] = ()
    requestheader_client_ca_file: Annotated[
        str,
        TEXT,
        Setting(
            "Certificate authorities (PEM) of proxies whose headers name users; without it the server ignores "
            "such headers. The server reloads the file when it changes.",
            flag="--requestheader-client-ca-file",
            metavar="FILE",
        ),
    ] = ""
    requestheader_allowed_names: Annotated[
        tuple[str, ...],
        NAMES,
        Setting(
            "The common names that a proxy's certificate may have. Empty: any name.",
            flag="--requestheader-allowed-names",
            metavar="LIST",
        ),
    ] = ()
    requestheader_username_headers: Annotated[
        tuple[str, ...],
        NAMES,
        Setting(
            "The headers with the user's name.",
            flag="--requestheader-username-headers",
            metavar="LIST",
        ),
    ] = ("X-Remote-User",)
    requestheader_uid_headers: Annotated[
        tuple[str, ...],
        NAMES,
        Setting(
            "The headers with the user's UID.",
            flag="--requestheader-uid-headers",
            metavar="LIST",
        ),
    ] = ("X-Remote-Uid",)
    requestheader_group_headers: Annotated[
        tuple[str, ...],
        NAMES,
        Setting(
            "The headers with the user's groups.",
            flag="--requestheader-group-headers",
            metavar="LIST",
        ),
    ] = ("X-Remote-Group",)
    requestheader_extra_headers_prefix: Annotated[
        tuple[str, ...],
        NAMES,
        Setting(
            "The prefix of the headers with further attributes of the user.",
            flag="--requestheader-extra-headers-prefix",
            metavar="LIST",
        ),
    ] = ("X-Remote-Extra-",)


@dataclass(frozen=True, kw_only=True)
class OpenIdSettings:
    """One trusted issuer of JSON web tokens, if `authentication.config` names no file."""

    issuer_url: Annotated[
        str,
        TEXT,
        Setting(
            "A trusted issuer of JSON web tokens (OpenID Connect), as an https URL; it needs oidc.client_id. For "
            "several issuers, or to change them at run time, use authentication.config.",
            flag="--oidc-issuer-url",
            metavar="URL",
        ),
    ] = ""
    client_id: Annotated[
        str,
        TEXT,
        Setting(
            "The client ID that the issuer's tokens must contain as an audience (`aud`).",
            flag="--oidc-client-id",
            metavar="NAME",
        ),
    ] = ""
    ca_file: Annotated[
        str,
        TEXT,
        Setting(
            "Certificate authorities (PEM) of the issuer's server, read at the start. Empty: those of the system.",
            flag="--oidc-ca-file",
            metavar="FILE",
        ),
    ] = ""
    username_claim: Annotated[
        str,
        TEXT,
        Setting("The claim with the user's name.", flag="--oidc-username-claim", metavar="CLAIM"),
    ] = "sub"
    username_prefix: Annotated[
        str,
        TEXT,
        Setting(
            'The prefix of the name. Empty: the issuer\'s URL and "#", but nothing before an `email`. "-": nothing.',
            flag="--oidc-username-prefix",
            metavar="PREFIX",
        ),
    ] = ""
    groups_claim: Annotated[
        str,
        TEXT,
        Setting("The claim with the user's groups. Empty: none.", flag="--oidc-groups-claim", metavar="CLAIM"),
    ] = ""
    groups_prefix: Annotated[
        str,
        TEXT,
        Setting("The prefix of each group.", flag="--oidc-groups-prefix", metavar="PREFIX"),
    ] = ""
    signing_algs: Annotated[
        tuple[str, ...],
        NAMES,
        Setting("The algorithms that tokens may be signed with.", flag="--oidc-signing-algs", metavar="LIST"),
    ] = ("RS256",)
    required_claim: Annotated[
        tuple[str, ...],
        NAMES,
        Setting(
            "Claims that tokens must have, each as CLAIM=VALUE.", flag="--oidc-required-claim", metavar="CLAIM=VALUE"
        ),
    ] = ()


@dataclass(frozen=True, kw_only=True)
class ServiceAccountSettings:
    """The issuer, keys and lifetime of service accounts' tokens."""

    issuer: Annotated[
        tuple[str, ...],
        NAMES,
        Setting(
            "The issuer of the tokens of service accounts, as a URL; tokens of further issuers in the list are "
            "accepted as well. Empty: https://kubernetes.default.svc.cluster.local.",
            flag="--service-account-issuer",
            metavar="URL",
        ),
    ] = ()
    signing_key_file: Annotated[
        str,
        TEXT,
        Setting(
            "The private key (PEM; RSA, or ECDSA on P-256, P-384 or P-521) that signs tokens of service "
            "accounts. Empty: the one of private_key_file, else pki/sa.key in data_dir, made when needed.",
            flag="--service-account-signing-key-file",
            metavar="FILE",
        ),
    ] = ""
    private_key_file: Annotated[
        str,
        TEXT,
        Setting(
            "The private key (PEM) that signs tokens in Secrets. Empty: the one of signing_key_file.",
            flag="--service-account-private-key-file",
            metavar="FILE",
        ),
    ] = ""
    key_file: Annotated[
        tuple[str, ...],
        NAMES,
        Setting(
            "Files of keys (PEM) that verify tokens of service accounts, in addition to the signing keys.",
            flag="--service-account-key-file",
            metavar="FILE",
        ),
    ] = ()
    lookup: Annotated[
        bool,
        SWITCH,
        Setting(
            "Whether a token in a Secret is valid only while the Secret contains it and its account exists. The "
            "objects to which other tokens are bound are always checked.",
            flag="--service-account-lookup",
            metavar="BOOL",
        ),
    ] = True
    jwks_uri: Annotated[
        str,
        TEXT,
        Setting(
            "The URL of the keys that verify this server's tokens. Empty: /openid/v1/jwks at this server.",
            flag="--service-account-jwks-uri",
            metavar="URL",
        ),
    ] = ""
    max_token_expiration: Annotated[
        float,
        DURATION,
        Setting(
            "The maximum lifetime of a token, at least 1h; longer requests are limited to it, with a "
            "warning. Zero: no maximum.",
            flag="--service-account-max-token-expiration",
            metavar="DURATION",
        ),
    ] = 0.0
    extend_token_expiration: Annotated[
        bool,
        SWITCH,
        Setting(
            "Whether tokens that are added to pods by default are valid for a year instead of an hour. Their use "
            "after that hour is recorded in the audit log.",
            flag="--service-account-extend-token-expiration",
            metavar="BOOL",
        ),
    ] = True

"""The settings of authentication, with the same names as the flags of kube-apiserver."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from ctrlmgr.settings.setting_declaration import Setting
from ctrlmgr.settings.setting_types import DURATION, NAMES, SWITCH, TEXT, one_of


@dataclass(frozen=True, kw_only=True)
class AuthenticationSettings:
    """The settings of authentication: how `serve` determines the user of a request."""

    token_auth_file: Annotated[
        str,
        TEXT,
        Setting(
            'A file of bearer tokens; each line is `token,user,uid,"group,group"` (mode 0600). Empty: tokens.csv '
            "in data_dir, if that file exists. The administrator's token is in the kubeconfig that `serve` writes "
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
            "Certificate authorities (PEM) that sign client certificates, in addition to the server's own "
            "authority. In a client certificate, the common name is the user, and the organizations are the "
            "groups. The server reloads the file when it changes.",
            flag="--client-ca-file",
            metavar="FILE",
        ),
    ] = ""
    anonymous_auth: Annotated[
        bool,
        SWITCH,
        Setting(
            "Whether the server accepts requests without credentials, as the user system:anonymous. The rights of "
            "system:anonymous decide which of these requests are allowed.",
            flag="--anonymous-auth",
            metavar="BOOL",
        ),
    ] = True
    config: Annotated[
        str,
        TEXT,
        Setting(
            "A file that lists trusted issuers of JSON web tokens (OpenID Connect), and the paths that allow "
            "anonymous requests. The format is YAML or JSON, AuthenticationConfiguration of "
            "apiserver.config.k8s.io/v1. With this file, anonymous_auth is ignored. The server reloads the file "
            "when it changes.",
            flag="--authentication-config",
            metavar="FILE",
        ),
    ] = ""
    token_webhook_config_file: Annotated[
        str,
        TEXT,
        Setting(
            "A kubeconfig whose current context names the authentication webhook: a server that verifies unknown "
            "tokens (TokenReview). Empty: no webhook is called.",
            flag="--authentication-token-webhook-config-file",
            metavar="FILE",
        ),
    ] = ""
    token_webhook_version: Annotated[
        str,
        one_of("v1", "v1beta1"),
        Setting(
            "The version of authentication.k8s.io in requests to the authentication webhook.",
            flag="--authentication-token-webhook-version",
            metavar="VERSION",
        ),
    ] = "v1beta1"
    token_webhook_cache_ttl: Annotated[
        float,
        DURATION,
        Setting(
            "How long a response of the authentication webhook is cached.",
            flag="--authentication-token-webhook-cache-ttl",
            metavar="DURATION",
        ),
    ] = 120.0
    enable_bootstrap_token_auth: Annotated[
        bool,
        SWITCH,
        Setting(
            "Whether clients may authenticate with bootstrap tokens: Secrets of type "
            "bootstrap.kubernetes.io/token in kube-system.",
            flag="--enable-bootstrap-token-auth",
            metavar="BOOL",
        ),
    ] = False
    api_audiences: Annotated[
        tuple[str, ...],
        NAMES,
        Setting(
            "The audiences of this server. The server refuses a token that names only other audiences. Empty: the "
            "issuers of service account tokens.",
            flag="--api-audiences",
            metavar="LIST",
        ),
    ] = ()
    requestheader_client_ca_file: Annotated[
        str,
        TEXT,
        Setting(
            "Certificate authorities (PEM) of authenticating proxies, which pass the user in headers of the "
            "request. Without this file, the server ignores such headers. The server reloads the file when it "
            "changes.",
            flag="--requestheader-client-ca-file",
            metavar="FILE",
        ),
    ] = ""
    requestheader_allowed_names: Annotated[
        tuple[str, ...],
        NAMES,
        Setting(
            "The common names that the certificate of an authenticating proxy may have. Empty: any name.",
            flag="--requestheader-allowed-names",
            metavar="LIST",
        ),
    ] = ()
    requestheader_username_headers: Annotated[
        tuple[str, ...],
        NAMES,
        Setting(
            "The request headers in which an authenticating proxy passes the user's name.",
            flag="--requestheader-username-headers",
            metavar="LIST",
        ),
    ] = ("X-Remote-User",)
    requestheader_uid_headers: Annotated[
        tuple[str, ...],
        NAMES,
        Setting(
            "The request headers in which an authenticating proxy passes the user's UID.",
            flag="--requestheader-uid-headers",
            metavar="LIST",
        ),
    ] = ("X-Remote-Uid",)
    requestheader_group_headers: Annotated[
        tuple[str, ...],
        NAMES,
        Setting(
            "The request headers in which an authenticating proxy passes the user's groups.",
            flag="--requestheader-group-headers",
            metavar="LIST",
        ),
    ] = ("X-Remote-Group",)
    requestheader_extra_headers_prefix: Annotated[
        tuple[str, ...],
        NAMES,
        Setting(
            "The prefix of the request headers in which an authenticating proxy passes further attributes of the user.",
            flag="--requestheader-extra-headers-prefix",
            metavar="LIST",
        ),
    ] = ("X-Remote-Extra-",)


@dataclass(frozen=True, kw_only=True)
class OpenIdSettings:
    """The settings of one trusted issuer of JSON web tokens.

    Ignored if the setting `authentication.config` names a file.
    """

    issuer_url: Annotated[
        str,
        TEXT,
        Setting(
            "The URL (https) of a trusted issuer of JSON web tokens (OpenID Connect); oidc.client_id must be set, "
            "too. If there are several issuers, or if they change at run time, use authentication.config.",
            flag="--oidc-issuer-url",
            metavar="URL",
        ),
    ] = ""
    client_id: Annotated[
        str,
        TEXT,
        Setting(
            "The client ID that tokens of the OpenID Connect issuer must contain as an audience (`aud`).",
            flag="--oidc-client-id",
            metavar="NAME",
        ),
    ] = ""
    ca_file: Annotated[
        str,
        TEXT,
        Setting(
            "Certificate authorities (PEM) that verify the server of the OpenID Connect issuer; read at the "
            "start only. Empty: the system's authorities.",
            flag="--oidc-ca-file",
            metavar="FILE",
        ),
    ] = ""
    username_claim: Annotated[
        str,
        TEXT,
        Setting(
            "The claim of an OpenID Connect token that contains the user's name.",
            flag="--oidc-username-claim",
            metavar="CLAIM",
        ),
    ] = "sub"
    username_prefix: Annotated[
        str,
        TEXT,
        Setting(
            "The prefix that is added to user names from OpenID Connect tokens. Empty: the issuer's URL and "
            '"#", but no prefix if the claim is `email`. "-": no prefix.',
            flag="--oidc-username-prefix",
            metavar="PREFIX",
        ),
    ] = ""
    groups_claim: Annotated[
        str,
        TEXT,
        Setting(
            "The claim of an OpenID Connect token that contains the user's groups. Empty: no claim.",
            flag="--oidc-groups-claim",
            metavar="CLAIM",
        ),
    ] = ""
    groups_prefix: Annotated[
        str,
        TEXT,
        Setting(
            "The prefix that is added to each group from an OpenID Connect token.",
            flag="--oidc-groups-prefix",
            metavar="PREFIX",
        ),
    ] = ""
    signing_algs: Annotated[
        tuple[str, ...],
        NAMES,
        Setting(
            "The signing algorithms that are accepted for OpenID Connect tokens.",
            flag="--oidc-signing-algs",
            metavar="LIST",
        ),
    ] = ("RS256",)
    required_claim: Annotated[
        tuple[str, ...],
        NAMES,
        Setting(
            "The claims that every OpenID Connect token must contain, each as CLAIM=VALUE.",
            flag="--oidc-required-claim",
            metavar="CLAIM=VALUE",
        ),
    ] = ()


@dataclass(frozen=True, kw_only=True)
class ServiceAccountSettings:
    """The settings of service account tokens: issuer, keys and lifetime."""

    issuer: Annotated[
        tuple[str, ...],
        NAMES,
        Setting(
            "The URL of the issuer of service account tokens; tokens of further issuers in the list are accepted "
            "as well. Empty: https://kubernetes.default.svc.cluster.local.",
            flag="--service-account-issuer",
            metavar="URL",
        ),
    ] = ()
    signing_key_file: Annotated[
        str,
        TEXT,
        Setting(
            "The private key (PEM; RSA, or ECDSA on P-256, P-384 or P-521) that signs service account tokens. "
            "Empty: the key in private_key_file; if that is empty, too, pki/sa.key in data_dir, which is created "
            "when needed.",
            flag="--service-account-signing-key-file",
            metavar="FILE",
        ),
    ] = ""
    private_key_file: Annotated[
        str,
        TEXT,
        Setting(
            "The private key (PEM) that signs service account tokens that are stored in Secrets. Empty: the "
            "key in signing_key_file.",
            flag="--service-account-private-key-file",
            metavar="FILE",
        ),
    ] = ""
    key_file: Annotated[
        tuple[str, ...],
        NAMES,
        Setting(
            "Files of keys (PEM) that verify service account tokens, in addition to the signing keys.",
            flag="--service-account-key-file",
            metavar="FILE",
        ),
    ] = ()
    lookup: Annotated[
        bool,
        SWITCH,
        Setting(
            "Whether a token from a Secret is valid only while the Secret contains the token and its service "
            "account exists. For other tokens, the server always checks that the objects to which they are bound "
            "exist.",
            flag="--service-account-lookup",
            metavar="BOOL",
        ),
    ] = True
    jwks_uri: Annotated[
        str,
        TEXT,
        Setting(
            "The URL of the public keys that verify this server's service account tokens. Empty: "
            "/openid/v1/jwks at this server.",
            flag="--service-account-jwks-uri",
            metavar="URL",
        ),
    ] = ""
    max_token_expiration: Annotated[
        float,
        DURATION,
        Setting(
            "The maximum lifetime of a service account token, at least 1h. If a request asks for a longer "
            "lifetime, the lifetime is reduced to the maximum, and the client receives a warning. Zero: no maximum.",
            flag="--service-account-max-token-expiration",
            metavar="DURATION",
        ),
    ] = 0.0
    extend_token_expiration: Annotated[
        bool,
        SWITCH,
        Setting(
            "Whether the service account tokens that are added to pods by default are valid for a year instead of "
            "an hour. If a client uses such a token after that hour, the audit log records it.",
            flag="--service-account-extend-token-expiration",
            metavar="BOOL",
        ),
    ] = True

"""Creates the authenticators of a serving process from the settings.

Guarantees: an unusable file raises an error before any component starts. If a file becomes unusable while the process
runs, the previous content of the file stays in force.

As in Kubernetes (`pkg/kubeapiserver/authenticator/config.go`), the authenticators are tried in this order: proxies,
client certificates, fixed tokens, tokens of service accounts, and bootstrap tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Protocol

from ctrlmgr.api.object import Object
from ctrlmgr.authentication.jwt_configuration import Configuration
from ctrlmgr.authentication.request_header import RequestHeaders
from ctrlmgr.authentication.service_account_claims import Find
from ctrlmgr.authentication.user import User
from ctrlmgr.clock import Clock
from ctrlmgr.controllers.cluster_authentication.decide import ClusterAuthentication
from ctrlmgr.errors import SettingsError
from ctrlmgr.http.front_proxy import NAME, FrontProxyCertificate
from ctrlmgr.http.tls import CertificateFiles
from ctrlmgr.serve.oidc_flags import issuer_of
from ctrlmgr.server.authn.account_keys import read_account_keys
from ctrlmgr.server.authn.authenticator_interfaces import Authenticator, TokenAuthenticator
from ctrlmgr.server.authn.authorities import AuthorityFiles
from ctrlmgr.server.authn.bootstrap_token_authenticator import BootstrapTokens
from ctrlmgr.server.authn.client_certificate_authenticator import ClientCertificates, FrontProxies
from ctrlmgr.server.authn.issuer_pages import issuer_pages
from ctrlmgr.server.authn.openid_authenticator import ConfiguredTokens, IssuersTokens
from ctrlmgr.server.authn.service_account_tokens import DEFAULT_ISSUER, ServiceAccountTokens
from ctrlmgr.server.authn.token_file import Tokens
from ctrlmgr.server.authn.token_requests import TokenRequests
from ctrlmgr.server.authn.union_authenticator import Anonymous, Authentication
from ctrlmgr.server.authn.webhook_tokens import WebhookTokens
from ctrlmgr.server.pages.nonresource_pages import Page
from ctrlmgr.settings import Settings

_SHORTEST_LIMIT = 3600
"""The smallest value, in seconds, to which the lifetime of tokens can be limited."""


class _ReloadedAuthenticator(Protocol):
    """An authenticator that reads its configuration from a file."""

    def reload(self) -> bool:
        """Reload the configuration file if it has changed."""


class ServingAuthentication:
    """The authenticators of a serving process; `authenticator` combines all of them."""

    def __init__(
        self,
        settings: Settings,
        files: CertificateFiles,
        fixed: Mapping[str, User],
        find: Find,
        *,
        clock: Clock,
        random: Random,
        on_use: Callable[[Object], None] = lambda secret: None,
        front_proxy: FrontProxyCertificate | None = None,
    ) -> None:
        """Read the files that the settings name; raises `SettingsError` if a file cannot be used.

        `fixed` maps tokens that are always valid to their users. `find` reads the objects to which tokens are bound,
        and `on_use` is called with each Secret whose token is used. `front_proxy` is the certificate with which this
        server proxies requests.
        """
        self._front_proxy_authority = front_proxy.authority if front_proxy is not None else ""
        self._settings = settings.authentication
        accounts = settings.service_accounts
        self.keys = read_account_keys(
            files.common / "sa.key", accounts.signing_key_file, accounts.private_key_file, accounts.key_file
        )
        self._keys_url = accounts.jwks_uri
        own_names = () if self._settings.requestheader_client_ca_file else (NAME,)
        self._proxy_names = self._settings.requestheader_allowed_names or own_names
        self._issuers = accounts.issuer or (DEFAULT_ISSUER,)
        audiences = self._settings.api_audiences or self._issuers
        self._tokens = Tokens(fixed, _token_file(settings), audiences)
        self.service_accounts = ServiceAccountTokens(
            self.keys.signing,
            self.keys.verifying,
            find,
            clock=clock,
            random=random,
            issuers=self._issuers,
            audiences=audiences,
            on_use=on_use,
            lookup=accounts.lookup,
        )
        self.token_requests = TokenRequests(
            self.service_accounts,
            find,
            clock=clock,
            longest=_longest(accounts.max_token_expiration),
            extends=accounts.extend_token_expiration,
        )
        self._clients = AuthorityFiles("authentication.client_ca_file", _authorities(settings, files))
        self._proxies = _proxy_authorities(settings, front_proxy)
        tokens: list[TokenAuthenticator] = [self._tokens, self.service_accounts]
        if self._settings.enable_bootstrap_token_auth:
            tokens.append(BootstrapTokens(find, audiences, clock=clock))
        self._admits_anonymous = _admits_anonymous(settings)
        self._anonymous = Anonymous(enabled=self._admits_anonymous)
        self._configured = self._read_configured(audiences, clock=clock)
        if self._configured is not None:
            tokens.append(self._configured)
        if (issuer := issuer_of(settings)) is not None:
            named = IssuersTokens(audiences, clock=clock)
            named.trust([issuer])
            tokens.append(named)
        if config_file := self._settings.token_webhook_config_file:
            keep_for, version = self._settings.token_webhook_cache_ttl, self._settings.token_webhook_version
            webhook_tokens = WebhookTokens(
                Path(config_file).expanduser(), audiences, keep_for=keep_for, version=version, clock=clock
            )
            tokens.append(webhook_tokens)
        self.authenticator = Authentication(
            [*self._front_proxies(clock), ClientCertificates(self._clients, clock=clock)],
            tokens,
            audiences=audiences,
            anonymous=self._anonymous,
        )

    @property
    def reloads(self) -> Sequence[Callable[[], object]]:
        """Functions that reload files if they have changed."""
        followed: list[_ReloadedAuthenticator | None] = [self._tokens, self._clients, self._proxies, self._configured]
        return [each.reload for each in followed if each is not None]

    def pages(self, keys_url: Callable[[], str]) -> Mapping[str, Page]:
        """Return the pages with which other systems verify this server's tokens.

        `keys_url` returns the URL at which the keys are served.
        """
        named = self._keys_url
        return issuer_pages(self._issuers[0], self.keys.verifying, lambda: named or keys_url())

    def published(self) -> ClusterAuthentication:
        """Return the settings for authenticating clients, in the form that is published for extension API servers."""
        settings = self._settings
        return ClusterAuthentication(
            client_ca=self._clients.pem,
            proxy_ca=self._proxies.pem if self._proxies is not None else self._front_proxy_authority,
            proxy_names=self._proxy_names,
            username_headers=settings.requestheader_username_headers,
            uid_headers=settings.requestheader_uid_headers,
            group_headers=settings.requestheader_group_headers,
            extra_prefixes=settings.requestheader_extra_headers_prefix,
        )

    def _read_configured(self, audiences: Sequence[str], *, clock: Clock) -> ConfiguredTokens | None:
        if not self._settings.config:
            return None
        file = Path(self._settings.config).expanduser()
        return ConfiguredTokens(file, self._issuers, audiences, self._take, clock=clock)

    def _take(self, configuration: Configuration) -> None:
        """Apply the anonymous access of an authentication configuration.

        If the configuration does not define anonymous access, apply the access that the settings define.
        """
        if configuration.anonymous is None:
            self._anonymous.admit(enabled=self._admits_anonymous)
        else:
            self._anonymous.admit(enabled=configuration.anonymous, paths=configuration.anonymous_paths)

    def _front_proxies(self, clock: Clock) -> list[Authenticator]:
        if self._proxies is None:
            return []
        settings = self._settings
        headers = RequestHeaders(
            username=settings.requestheader_username_headers,
            uid=settings.requestheader_uid_headers,
            group=settings.requestheader_group_headers,
            extra_prefix=settings.requestheader_extra_headers_prefix,
        )
        return [FrontProxies(self._proxies, self._proxy_names, headers, clock=clock)]


def _admits_anonymous(settings: Settings) -> bool:
    """Return whether anonymous requests are allowed.

    Anonymous requests are never allowed if all users may do everything.
    """
    return settings.authentication.anonymous_auth and "AlwaysAllow" not in settings.authorization.mode


def _token_file(settings: Settings) -> Path:
    named = settings.authentication.token_auth_file
    file = Path(named).expanduser() if named else settings.data_path / "tokens.csv"
    if named and not file.exists():
        raise SettingsError(f"authentication.token_auth_file: there is no {file}")
    return file


def _authorities(settings: Settings, files: CertificateFiles) -> list[Path]:
    named = settings.authentication.client_ca_file
    return [files.authority, *([Path(named).expanduser()] if named else [])]


def _proxy_authorities(settings: Settings, own: FrontProxyCertificate | None) -> AuthorityFiles | None:
    """Return the authorities of authenticating proxies; by default, peers with our own authority are trusted."""
    named = settings.authentication.requestheader_client_ca_file
    if not named and settings.server.peer_ca_file and own is not None and own.authority_file is not None:
        return AuthorityFiles("data_dir", [own.authority_file])
    if not named:
        return None
    return AuthorityFiles("authentication.requestheader_client_ca_file", [Path(named).expanduser()])


def _longest(seconds: float) -> int:
    if 0 < seconds < _SHORTEST_LIMIT:
        raise SettingsError("service_accounts.max_token_expiration is less than 1h; it must be 0s or at least 1h")
    return round(seconds)

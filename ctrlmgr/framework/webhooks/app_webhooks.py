"""Combines the webhooks of one process: their server, certificate and registration.

Guarantees: the server listens on its final address before the process writes anything. Every process serves the
admission functions of its apps, but only the leader registers the webhooks.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from urllib.parse import urlsplit

from ctrlmgr.api.resource import Key
from ctrlmgr.client import EngineClient
from ctrlmgr.clock import Clock
from ctrlmgr.framework.app import App
from ctrlmgr.framework.remote.api_server_log import RemoteLog
from ctrlmgr.framework.webhooks.cluster_reader import ClusterReader
from ctrlmgr.framework.webhooks.registering import Registration
from ctrlmgr.framework.webhooks.webhook_address import WebhookOptions, decide_address
from ctrlmgr.framework.webhooks.webhook_certificates import WebhookCertificates
from ctrlmgr.framework.webhooks.webhook_configurations import Registered, configurations, path_of
from ctrlmgr.framework.webhooks.webhook_server import WebhookServer


class AppWebhooks:
    """The webhooks for the admission functions of apps."""

    def __init__(
        self,
        apps: Sequence[App],
        options: WebhookOptions,
        event_log: RemoteLog,
        writer: EngineClient,
        *,
        cluster: str,
        namespace: str,
        run: str,
        clock: Clock,
    ) -> None:
        """Serve the admission functions of `apps` to the API server at the URL `cluster`.

        Raises `SettingsError` if the address cannot be used. The functions decide only about writes in `namespace`; an
        empty namespace means all namespaces. `writer` writes the webhook configurations, and `run` identifies this
        process.
        """
        functions = {path_of(app.name, each.name): each for app in apps for each in app.admissions}
        called = ", ".join(
            f"app {app.name} ({', '.join(each.name for each in app.admissions)})" for app in apps if app.admissions
        )
        self._apps = apps
        self._namespace = namespace
        self._log = event_log
        self._id = run
        self._address = decide_address(options, cluster, functions=called)
        # A proxy in front of this process may remove the path of --webhook-url, or keep it.
        prefix = urlsplit(self._address.url).path
        functions |= {prefix + path: each for path, each in functions.items()}
        self._certificates = WebhookCertificates(self._address.names, clock=clock)
        self._authority = ""
        self.server = WebhookServer(
            self._address.listen, functions, ClusterReader(event_log), self._certificates, clock=clock
        )
        """The server of the admission functions; it runs in every process."""
        self.registration = Registration(
            self._desired, event_log, writer, label=self._address.label(self.server.port), run=run, clock=clock
        )
        """The runnable that registers the webhooks; it runs in the leader."""

    @property
    def functions(self) -> list[str]:
        """Return the names of the admission functions that are served."""
        return [each.name for app in self._apps for each in app.admissions]

    def prepare(self, writer: EngineClient) -> None:
        """Create the certificate of the webhook server.

        If the API server calls the process through a Service, `writer` stores the certificate authority in a Secret.
        Raises `ApiError` if a request fails, and `SettingsError` if the Secret is unusable.
        """
        service = self._address.service
        if service is not None:
            self._certificates.share(Key(service.namespace, f"{service.name}-webhook-authority"), self._log, writer)
        self._authority = base64.b64encode(self._certificates.ensure()).decode()

    def _desired(self) -> list[Registered]:
        port = self.server.port
        return [
            each
            for app in self._apps
            for each in configurations(
                app,
                self._namespace,
                lambda path: self._address.client_config(path, port, self._authority),
                self._id,
            )
        ]

"""Reads the URL and credentials of a cluster from a kubeconfig, as kubectl does, or from the files of a pod.

Guarantees:
- `$KUBECONFIG` may name several files; if several files define the same name, the first definition is used. Relative
  paths in a kubeconfig are relative to the kubeconfig (client-go `tools/clientcmd`).
- When the cluster refuses a token, the token's file is read again, or the credential plugin runs again (KEP-541).
- Missing or malformed data raises a `SettingsError` that names the file and the entry.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import ssl
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from ctrlmgr.errors import SettingsError

_IN_CLUSTER = Path("/var/run/secrets/kubernetes.io/serviceaccount")
EXTENSION = "ctrlmgr"
"""The name of the kubeconfig extension that `serve` adds to its own cluster entries.

The extension contains the data directory and the URL of the event log.
"""
_PLUGIN_PATIENCE = 60.0
"""Maximum run time of a credential plugin in seconds; within this time, the plugin can ask the user to log in."""

Fields = dict[str, Any]


@dataclass(frozen=True)
class Access:
    """The URL of a cluster's API server, and the credentials for it."""

    server: str
    """The URL of the API server, without a trailing slash."""
    namespace: str
    """The namespace of the kubeconfig's context; empty if the context contains no namespace."""
    context: ssl.SSLContext | None
    """The TLS context with the certificate authorities and the client certificate; None for plain HTTP."""
    server_name: str
    """The server name that the server's certificate must contain; if empty, the host in the URL is used."""
    user: Fields = field(repr=False)
    proxy: str = ""
    authority: bytes = b""
    """The certificate authorities that `context` trusts, in PEM; if empty, those of the operating system."""
    certificate: bytes = field(default=b"", repr=False)
    """The client certificate and its key in PEM; empty if there is no client certificate."""
    is_checked: bool = True
    """Whether the server's certificate is verified."""
    extension: Fields | None = None
    """The extension that `serve` wrote, with the data directory and the log; None for an entry of another program."""
    origin: str = ""
    """The origin of the access, for error messages: the kubeconfig files, and the context that names the user.

    The origin is empty if no kubeconfig was used.
    """

    def headers(self) -> dict[str, str]:
        """Return the HTTP request headers that contain the user's credentials.

        If the user's entry names a token file or a credential plugin, each call reads the file or runs the plugin.
        """
        return headers_of(self.user)

    def pool_options(self) -> dict[str, Any]:
        """Return the TLS options for a connection pool of urllib3: the certificates and the server's name."""
        if self.context is None:
            return {}
        options: dict[str, Any] = {"ssl_context": self.context}
        if self.server_name:
            options["server_hostname"] = options["assert_hostname"] = self.server_name
        elif not self.context.check_hostname:
            options["assert_hostname"] = False
        return options


def load(files: Sequence[Path], context: str = "") -> Access:
    """Return the URL and credentials of a context; the default is the current context.

    Raises `SettingsError` if the URL or the credentials are missing or malformed.
    """
    config = _merged(files)
    shown = ":".join(str(file) for file in files)
    name, chosen, cluster = _chosen(config, context, shown)
    user = _entry(config, "users", chosen["user"], shown) if chosen.get("user") else {}
    server = str(cluster.get("server") or "")
    if not server.startswith(("https://", "http://")):
        raise SettingsError(
            f"{shown}: cluster {chosen.get('cluster')!r} has no field server; set it to the server's URL"
        )
    authority, certificate = _data(cluster, "certificate-authority"), certificate_of(user)
    is_checked = not cluster.get("insecure-skip-tls-verify")
    try:
        trust = trusting(authority, certificate, is_checked) if server.startswith("https:") else None
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise SettingsError(f"{shown}: the certificates of context {name!r} cannot be used: {error}") from error
    return Access(
        server.rstrip("/"),
        chosen.get("namespace") or "",
        trust,
        cluster.get("tls-server-name") or "",
        user,
        cluster.get("proxy-url") or "",
        authority,
        certificate,
        is_checked,
        _extension(cluster),
        f"{shown}, context {name!r}",
    )


def access_at(url: str) -> Access:
    """Return the access to an API server without credentials; raises `SettingsError` if `url` is not a valid URL."""
    if not url.startswith(("https://", "http://")):
        raise SettingsError(f"--master is {url!r}; it must be a URL such as https://192.0.2.10:6443")
    trust = trusting(b"", b"", True) if url.startswith("https:") else None
    return Access(url.rstrip("/"), "", trust, "", {})


def is_marked(files: Sequence[Path]) -> bool:
    """Return whether `serve` wrote the cluster entry of the current context; the function reads no credentials."""
    try:
        return _extension(_chosen(_merged(files), "", "")[2]) is not None
    except SettingsError:
        return False


def default_files(environment: Mapping[str, str], home: Path) -> list[Path]:
    """Return the paths of the kubeconfig files that kubectl reads."""
    named = [Path(each) for each in environment.get("KUBECONFIG", "").split(":") if each]
    return named or [home / ".kube" / "config"]


def in_cluster(environment: Mapping[str, str], folder: Path = _IN_CLUSTER) -> Access | None:
    """Return the access with the service account of the pod in which the process runs; None outside a pod."""
    host, port = environment.get("KUBERNETES_SERVICE_HOST"), environment.get("KUBERNETES_SERVICE_PORT")
    if not host or not port or not (folder / "token").exists():
        return None
    context = ssl.create_default_context(cafile=str(folder / "ca.crt"))
    place = f"[{host}]" if ":" in host else host
    return Access(f"https://{place}:{port}", "", context, "", {"tokenFile": str(folder / "token")}, origin=str(folder))


def headers_of(user: Fields) -> dict[str, str]:
    """Return the HTTP request headers with a user's credentials; may read a token file or run a credential plugin."""
    if name := user.get("username"):
        basic = base64.b64encode(f"{name}:{user.get('password', '')}".encode()).decode()
        return {"authorization": f"Basic {basic}"}
    token = user.get("token") or ""
    if path := user.get("tokenFile"):
        token = _read(Path(path)).decode().strip()
    elif "exec" in user:
        token = run_plugin(user["exec"]).get("token", "")
    return {"authorization": f"Bearer {token}"} if token else {}


def users_of(file: Path) -> Mapping[str, Fields]:
    """Return the users of a kubeconfig, by name; raises `SettingsError` if an entry is malformed."""
    users: Mapping[str, Fields] = _merged([file])["users"]
    return users


def run_plugin(plugin: Any) -> Fields:
    """Run a credential plugin and return the `status` of the ExecCredential that it prints.

    Raises `SettingsError` if the plugin fails.
    """
    if not isinstance(plugin, dict) or not plugin.get("command"):
        raise SettingsError("kubeconfig: user.exec has no command")
    api_version = plugin.get("apiVersion") or "client.authentication.k8s.io/v1"
    credential = {"kind": "ExecCredential", "apiVersion": api_version, "spec": {"interactive": False}}
    environment = {**os.environ, "KUBERNETES_EXEC_INFO": json.dumps(credential)}
    environment.update({each["name"]: each["value"] for each in plugin.get("env") or ()})
    command = [plugin["command"], *(plugin.get("args") or ())]
    try:
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, timeout=_PLUGIN_PATIENCE, check=True)
        status = json.loads(done.stdout)["status"]
    except (OSError, subprocess.SubprocessError, ValueError, LookupError, TypeError) as error:
        hint = f"; {plugin['installHint']}" if plugin.get("installHint") and isinstance(error, OSError) else ""
        raise SettingsError(f"the credential plugin {plugin['command']!r} failed: {error}{hint}") from error
    if not isinstance(status, dict):
        raise SettingsError(f"the credential plugin {plugin['command']!r} returned no credentials")
    return status


def _merged(files: Sequence[Path]) -> Fields:
    merged: Fields = {"current-context": "", "clusters": {}, "users": {}, "contexts": {}}
    found = [file for file in files if file.exists()]
    if not found:
        raise SettingsError(f"there is no kubeconfig at {files[0]}; choose another with --kubeconfig")
    for file in found:
        try:
            config = yaml.safe_load(_read(file)) or {}
            merged["current-context"] = merged["current-context"] or config.get("current-context") or ""
            for kind, inner in (("clusters", "cluster"), ("users", "user"), ("contexts", "context")):
                for entry in config.get(kind) or ():
                    merged[kind].setdefault(entry["name"], _absolute(entry.get(inner) or {}, file.parent))
        except yaml.MarkedYAMLError as error:
            line = error.problem_mark.line + 1 if error.problem_mark else 1
            raise SettingsError(f"{file}:{line}: not valid YAML: {error.problem}") from error
        except (yaml.YAMLError, AttributeError, LookupError, TypeError) as error:
            raise SettingsError(f"{file} is not a kubeconfig: {error}") from error
    return merged


def _chosen(config: Fields, context: str, shown: str) -> tuple[str, Fields, Fields]:
    """Return the name of a context, the context itself and its cluster.

    Raises `SettingsError` if the context or its cluster is missing.
    """
    name = context or config["current-context"]
    if not name:
        raise SettingsError(f"{shown} has no current context; --context names one of: {_names(config['contexts'])}")
    chosen = _entry(config, "contexts", name, shown)
    return name, chosen, _entry(config, "clusters", chosen.get("cluster") or "", shown)


def _extension(cluster: Fields) -> Fields | None:
    for each in cluster.get("extensions") or ():
        if isinstance(each, dict) and each.get("name") == EXTENSION:
            found = each.get("extension")
            return found if isinstance(found, dict) else {}
    return None


def _absolute(entry: Fields, folder: Path) -> Fields:
    paths = ("certificate-authority", "client-certificate", "client-key", "tokenFile")
    found: Fields = {each: str(folder / entry[each]) for each in paths if entry.get(each)}
    plugin = entry.get("exec")
    if isinstance(plugin, dict) and os.sep in str(plugin.get("command")):
        found["exec"] = {**plugin, "command": str(folder / plugin["command"])}
    return {**entry, **found}


def _entry(config: Fields, kind: str, name: str, shown: str) -> Fields:
    entry = config[kind].get(name)
    if entry is None:
        raise SettingsError(f"{shown} has no {kind[:-1]} {name!r}; there are: {_names(config[kind])}")
    found: Fields = entry
    return found


def _names(entries: Fields) -> str:
    return ", ".join(entries) or "none"


def trusting(authority: bytes, certificate: bytes, is_checked: bool) -> ssl.SSLContext:
    """Return a TLS context that trusts `authorities` (PEM) and presents a client certificate.

    If `authorities` is empty, the context trusts the authorities of the operating system.

    If `is_checked` is False, the context does not verify the server's certificate. Raises `OSError` and `ValueError` if
    a certificate is invalid.
    """
    if is_checked:
        context = ssl.create_default_context(cadata=authority.decode() if authority else None)
    else:  # loading the system's authorities would take a tenth of a second
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if certificate:
        _show(context, certificate)
    return context


def certificate_of(user: Fields) -> bytes:
    """Return a user's client certificate and its key as PEM.

    The result is empty if the certificate or the key is missing.

    Raises `SettingsError` if a file cannot be read.
    """
    certificate, key = _data(user, "client-certificate"), _data(user, "client-key")
    if "exec" in user and not certificate:
        status = run_plugin(user["exec"])
        certificate = status.get("clientCertificateData", "").encode()
        key = status.get("clientKeyData", "").encode()
    return certificate + b"\n" + key if certificate and key else b""


def _show(context: ssl.SSLContext, certificate: bytes) -> None:
    """Load a client certificate and its key (PEM) into a context; raises `ssl.SSLError` if they are invalid."""
    with tempfile.NamedTemporaryFile() as both:  # the file has mode 0600; OpenSSL loads certificates only from files
        both.write(certificate)
        both.flush()
        context.load_cert_chain(both.name)


def _data(entry: Fields, name: str) -> bytes:
    """Return the data that a kubeconfig entry contains, or the content of the file that the entry names.

    Return an empty result if the entry contains neither data nor a file name.
    """
    if inline := entry.get(f"{name}-data"):
        try:
            return base64.b64decode(inline, validate=True)
        except (binascii.Error, ValueError, TypeError) as error:
            raise SettingsError(f"kubeconfig: {name}-data is not base64: {error}") from error
    return _read(Path(entry[name])) if entry.get(name) else b""


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror}") from error

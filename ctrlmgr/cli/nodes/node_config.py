"""`ctrlmgr node-config`: allows a node to join, and prints the files for its kubelet, or a `kubeadm join` command.

Guarantees: existing roles, bindings and ConfigMaps are not changed, except for the address and the authority of the
server in `cluster-info`. Each call of the command creates a new token.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import click

from ctrlmgr.cli.options import Duration, output_option
from ctrlmgr.errors import AlreadyExists, NotFound, ServiceUnavailable, SettingsError, Unauthorized

if TYPE_CHECKING:
    from ctrlmgr.cli.nodes.kubelet_files import JoinedCluster
    from ctrlmgr.framework.remote.remote_api import Api
    from ctrlmgr.settings.kubeconfig import Access

_FILE = click.Path(dir_okay=False, path_type=Path)
_FOLDER = click.Path(file_okay=False, path_type=Path)
_PROGRAM: Final = "ctrlmgr-node-config"
_SIGNED_WITHIN: Final = 10.0
"""The maximum number of seconds to wait until a new token is signed."""
_FILES: Final = ("bootstrap-kubelet.conf", "kubelet-config.yaml", "ca.crt")
"""The files for a joining node: the kubeconfig for the bootstrap, the KubeletConfiguration, and the authority of the
kubelet's clients.
"""

Fields = dict[str, Any]


@click.command("node-config", short_help="Allow a node to join, and print the configuration of its kubelet.")
@click.argument("name", metavar="NODE")
@click.option("--kubeconfig", type=_FILE, metavar="FILE", help="The kubeconfig of the cluster; by default kubectl's.")
@click.option(
    "--context", default="", metavar="NAME", help="The context of the kubeconfig; by default the current context."
)
@click.option(
    "--server",
    default="",
    metavar="URL",
    help=("The URL at which the node reaches the server; by default the server in the kubeconfig."),
)
@click.option(
    "--ttl",
    type=Duration(),
    default="24h",
    metavar="DURATION",
    show_default=True,
    help=("How long the bootstrap token is valid."),
)
@click.option(
    "--serving-certificate",
    is_flag=True,
    help=(
        "Configure the kubelet to request its serving certificate; kubelet-serving-approving-controller approves "
        "the request."
    ),
)
@click.option(
    "--output-dir", type=_FOLDER, metavar="DIR", help=("Write the files into this directory instead of printing them.")
)
@output_option("yaml", "json", "kubeadm")
def node_config(
    name: str,
    kubeconfig: Path | None,
    context: str,
    server: str,
    ttl: float,
    serving_certificate: bool,
    output_dir: Path | None,
    output: str,
) -> None:
    """Allow the node NODE to join, and print a bootstrap kubeconfig and a KubeletConfiguration for the node's kubelet.

    The command creates a bootstrap token, and those roles and ConfigMaps of `kubeadm init` that are missing. If `-o
    kubeadm` is given, the command prints a `kubeadm join` command instead. If `--output-dir` is given, the command
    writes the files into a directory, and prints the kubelet's flags. Paths in the KubeletConfiguration are relative to
    the file of the KubeletConfiguration.

    \b
    ctrlmgr node-config worker-1 --server https://192.0.2.10:6443 --output-dir worker-1
    ctrlmgr node-config worker-1 -o kubeadm
    """
    import random

    from ctrlmgr.authentication.user_names import is_subdomain
    from ctrlmgr.cli.nodes import kubeadm_objects, kubelet_files
    from ctrlmgr.cli.recordings.record import access_of
    from ctrlmgr.clock import SystemClock
    from ctrlmgr.framework.remote.remote_api import Api
    from ctrlmgr.framework.remote.throttle import Throttle

    if not is_subdomain(name):
        raise click.UsageError(f"{name!r} is not a node's name; write lower-case letters, digits, dashes and dots")
    access, clock = access_of(kubeconfig, context), SystemClock()
    api = Api(access, Throttle(0, 1, clock=clock), program=_PROGRAM)
    cluster = _cluster(api, access, server)
    _warn_of_loopback(cluster.server)
    for fields in kubeadm_objects.joining_objects(cluster, requests_serving=serving_certificate):
        _create(api, fields)
    _apply(api, kubeadm_objects.cluster_info(cluster))
    token = kubeadm_objects.new_token(random.SystemRandom())
    _create(api, kubeadm_objects.token_secret(token, name, clock.now() + int(ttl * 1_000_000)))
    _require_token(access, token)
    if output == "kubeadm":
        _require_signature(api, token)
        click.echo(_join_command(name, cluster, token))
        return
    kubelet = kubelet_files.kubelet_configuration(cluster, _FILES[2], requests_serving=serving_certificate)
    bootstrap = kubelet_files.bootstrap_kubeconfig(cluster, token)
    if output_dir is None:
        _print(name, bootstrap, kubelet, output)
        return
    _write(output_dir, bootstrap, kubelet, _client_authority(api, cluster))
    click.echo(_kubelet_command(name, output_dir))


def _cluster(api: Api, access: Access, server: str) -> JoinedCluster:
    """Request the data that a joining node needs from the server.

    Raises `SettingsError` if the kubeconfig has no authority, and `ApiError` if a request fails.
    """
    from ctrlmgr.cli.nodes.kubelet_files import JoinedCluster

    if server and not urlsplit(server).hostname:
        raise click.UsageError(f"--server is {server!r}; it must be a URL such as https://192.0.2.10:6443")
    if not access.authority:
        raise SettingsError("the kubeconfig names no certificate authority, which nodes need; choose another")
    version = str(json.loads(api.call("GET", "/version"))["gitVersion"]).partition("+")[0]
    ranges = json.loads(api.call("GET", "/apis/networking.k8s.io/v1/servicecidrs/kubernetes"))["spec"]["cidrs"]
    return JoinedCluster(server.rstrip("/") or access.server, access.authority, version, ranges[0])


def _warn_of_loopback(server: str) -> None:
    host = urlsplit(server).hostname or ""
    if host == "localhost" or host == "::1" or host.startswith("127."):
        click.echo(f"note: only this machine reaches {server}; --server names the URL for other machines", err=True)


def _create(api: Api, fields: Fields) -> None:
    """Create an object in the cluster, unless it already exists."""
    try:
        api.call("POST", _path(fields), json.dumps(fields).encode())
    except AlreadyExists:
        return


def _apply(api: Api, fields: Fields) -> None:
    path = f"{_path(fields)}/{fields['metadata']['name']}"
    query = {"fieldManager": _PROGRAM, "force": "true"}
    api.call("PATCH", path, json.dumps(fields).encode(), query=query, media_type="application/apply-patch+yaml")


def _path(fields: Fields) -> str:
    from ctrlmgr.framework.remote.remote_api import path_of

    return path_of(fields["apiVersion"], f"{fields['kind'].lower()}s", fields["metadata"].get("namespace", ""))


def _require_token(access: Access, token: str) -> None:
    """Raise `SettingsError` if the server does not accept bootstrap tokens."""
    from ctrlmgr.clock import SystemClock
    from ctrlmgr.framework.remote.remote_api import Api
    from ctrlmgr.framework.remote.throttle import Throttle
    from ctrlmgr.settings.kubeconfig import trusting

    trust = trusting(access.authority, b"", access.is_checked) if access.context is not None else None
    joining = replace(access, user={"token": token}, context=trust, certificate=b"")
    body = json.dumps({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}).encode()
    api = Api(joining, Throttle(0, 1, clock=SystemClock()), program=_PROGRAM)
    try:
        api.call("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", body)
    except Unauthorized as error:
        raise SettingsError(
            "the server does not accept bootstrap tokens; start it with --enable-bootstrap-token-auth"
        ) from error


def _require_signature(api: Api, token: str) -> None:
    """Wait until `cluster-info` contains a signature that uses the new token.

    Raises `SettingsError` if there is no signature after `_SIGNING_TIMEOUT` seconds.
    """
    from ctrlmgr.cli.nodes.kubeadm_objects import INFO_PATH, SIGNATURE
    from ctrlmgr.cli.wait import until_ready
    from ctrlmgr.clock import SystemClock

    name = SIGNATURE + token.partition(".")[0]

    def ask() -> str:
        data = json.loads(api.call("GET", INFO_PATH)).get("data") or {}
        if name not in data:
            raise ServiceUnavailable("cluster-info is not signed")
        return str(data[name])

    if not until_ready(ask, _SIGNED_WITHIN, clock=SystemClock())[0]:
        raise SettingsError(
            "no controller signs cluster-info, which kubeadm needs; start the server with "
            "--controllers '*,bootstrap-signer-controller'"
        )


def _join_command(name: str, cluster: JoinedCluster, token: str) -> str:
    from hashlib import sha256

    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    key = x509.load_pem_x509_certificate(cluster.authority).public_key()
    pin = sha256(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).hexdigest()
    place = urlsplit(cluster.server).netloc
    return f"kubeadm join {place} --node-name {name} --token {token} --discovery-token-ca-cert-hash sha256:{pin}"


def _print(name: str, bootstrap: Fields, kubelet: Fields, output: str) -> None:
    import yaml

    if output == "json":
        click.echo(json.dumps({"bootstrapKubeconfig": bootstrap, "kubeletConfiguration": kubelet}, indent=2))
        return
    for file, fields in zip(_FILES, (bootstrap, kubelet), strict=False):
        click.echo(f"--- # {file}\n{yaml.safe_dump(fields, sort_keys=False)}", nl=False)
    click.echo(f"# {_kubelet_command(name, Path('.'))}")


def _write(folder: Path, bootstrap: Fields, kubelet: Fields, authority: str) -> None:
    import yaml

    from ctrlmgr.http.tls import write_private

    folder.mkdir(parents=True, exist_ok=True)
    texts = (yaml.safe_dump(bootstrap, sort_keys=False), yaml.safe_dump(kubelet, sort_keys=False), authority)
    for file, text in zip(_FILES, texts, strict=True):
        write_private(folder / file, text.encode())


def _client_authority(api: Api, cluster: JoinedCluster) -> str:
    """Return the authorities (PEM) for clients of kubelets; they are also the authorities for clients of the server."""
    try:
        answer = api.call("GET", "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication")
    except NotFound:
        return cluster.authority.decode()
    return str((json.loads(answer).get("data") or {}).get("client-ca-file") or cluster.authority.decode())


def _kubelet_command(name: str, folder: Path) -> str:
    return (
        f"kubelet --hostname-override {name} --config {folder / _FILES[1]} "
        f"--bootstrap-kubeconfig {folder / _FILES[0]} --kubeconfig {folder / 'kubelet.conf'}"
    )

"""Derives the settings of a cluster from those of the process that serves it.

Guarantees: all files of a cluster are in its directory. Two clusters share no key, and a cluster shows no other
cluster's data in its pages.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ctrlmgr.settings import Settings
from ctrlmgr.settings.cluster_settings import ClusterSettings


def settings_of(host: Settings, directory: Path, authority: Path) -> Settings:
    """Return the settings of the cluster in `directory`; `authority` signed the certificate of the outer server.

    The audit log of a cluster is in its directory, under the name of the outer server's file.
    """
    audit_file = Path(host.audit.log_path).name
    return replace(
        host,
        data_dir=str(directory),
        database=replace(host.database, url="", anchor="", anchor_key=""),
        server=replace(
            host.server,
            role="all",
            identity_dir="",
            ready_file="",
            public_url="",
            external_hostname="",
            peer_ca_file="",
            peer_advertise_ip="",
            peer_advertise_port="",
            shutdown_delay=0.0,
            profiling=False,  # a profile shows the work of all clusters
        ),
        service_accounts=replace(host.service_accounts, signing_key_file="", private_key_file="", key_file=()),
        audit=replace(host.audit, log_path=str(directory / audit_file) if audit_file not in ("", "-") else ""),
        controllers=replace(host.controllers, root_ca_file=host.controllers.root_ca_file or str(authority)),
        leader_election=replace(host.leader_election, enabled=False),
        clusters=ClusterSettings(),
    )

"""Tests of settings: which source takes precedence, validation, and settings.toml as the list of all defaults."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import pytest

from ctrlmgr.controllers import registry as _registry  # noqa: F401  # declares the controllers' options as settings
from ctrlmgr.controllers.endpoints import Options
from ctrlmgr.errors import SettingsError
from ctrlmgr.settings import (
    Retention,
    Setting,
    Settings,
    declare,
    format_duration,
    keys,
    load,
    parse_duration,
    value_of,
    variable,
)
from ctrlmgr.settings.setting_types import whole

ROOT = Path(__file__).parents[1]


def write(folder: Path, text: str) -> Path:
    file = folder / "my.toml"
    file.write_text(text, encoding="utf-8")
    return file


def test_settings_toml_contains_every_key_with_its_default() -> None:
    file = ROOT / "settings.toml"
    loaded = load({}, {}, file)
    assert loaded.settings == Settings()
    assert set(loaded.origins.values()) == {str(file)}, "a key is missing from settings.toml"


def test_settings_toml_explains_every_key() -> None:
    lines = (ROOT / "settings.toml").read_text(encoding="utf-8").splitlines()
    bare = [line for above, line in itertools.pairwise(lines) if re.match(r"\w+ =", line) and above[:1] != "#"]
    assert not bare


@pytest.mark.parametrize(
    ("environment", "found"),
    [
        ({"XDG_STATE_HOME": "/states/"}, "/states/ctrlmgr"),
        ({"XDG_STATE_HOME": "relative"}, "~/.local/state/ctrlmgr"),
        ({"XDG_STATE_HOME": "/states", "CTRLMGR_DATA_DIR": "/data"}, "/data"),
    ],
)
def test_the_data_directory_follows_the_xdg_specification(environment: dict[str, str], found: str) -> None:
    loaded = load({}, environment)
    assert loaded.settings.data_dir == found
    assert loaded.is_default("data_dir") is (found != "/data")


def test_flags_override_the_environment_the_file_and_the_default(tmp_path: Path) -> None:
    file = write(
        tmp_path,
        '[log]\nlevel = "error"\nformat = "json"\n[server]\nlisten = "a:1"\n[controllers]\nconcurrent_gc_syncs = 5\n',
    )
    environment = {"CTRLMGR_LOG_LEVEL": "warning", "CTRLMGR_SERVER_LISTEN": "b:2"}
    loaded = load({"log.level": "debug", "log.format": None}, environment, file)
    assert loaded.settings.log.level == "debug"
    assert loaded.settings.server.listen == "b:2"
    assert loaded.settings.log.format == "json"
    assert loaded.settings.watch_cache.capacity == Settings().watch_cache.capacity
    assert {
        key: loaded.origins[key] for key in ("log.level", "server.listen", "log.format", "watch_cache.capacity")
    } == {
        "log.level": "--log-level",
        "server.listen": "environment CTRLMGR_SERVER_LISTEN",
        "log.format": str(file),
        "watch_cache.capacity": "default",
    }


def test_the_environment_names_the_file_and_a_flag_overrides_it(tmp_path: Path) -> None:
    named = write(tmp_path, "[controllers]\nconcurrent_endpoint_syncs = 7\n")
    assert load({}, {"CTRLMGR_SETTINGS": str(named)}).settings.of(Options).concurrent_endpoint_syncs == 7
    other = tmp_path / "other.toml"
    other.write_text("[controllers]\nconcurrent_endpoint_syncs = 8\n", encoding="utf-8")
    assert load({}, {"CTRLMGR_SETTINGS": str(named)}, other).settings.of(Options).concurrent_endpoint_syncs == 8


VALUES = {
    "data_dir": "/elsewhere",
    "database.url": "memory:",
    "metrics.disabled": "apiserver_request_total",
    "metrics.allow_labels": "apiserver_request_total,verb=GET,LIST",
    "metrics.allow_labels_manifest": "labels.yaml",
    "metrics.show_hidden_for_version": "1.35",
    "server.peer_ca_file": "ca.crt",
    "server.peer_advertise_ip": "192.0.2.7",
    "server.peer_advertise_port": "443",
    "leader_election.migration": "true",
    "leader_election.migration_config": "migration.yaml",
    "log.modules": "controller=4,ctrlmgr.server.*=0",
    "database.pool_size": "3",
    "database.anchor": "/elsewhere/anchor",
    "database.anchor_key": "/elsewhere/key",
    "database.encryption_provider_config": "/elsewhere/keys.yaml",
    "database.encryption_provider_config_automatic_reload": "true",
    "database.anchor_command": "tee -a /elsewhere/anchors",
    "database.anchor_command_every": "5m",
    "server.role": "api-only",
    "server.listen": "[::1]:0",
    "server.advertise_address": "192.0.2.10",
    "server.identity_dir": "/srv/identity",
    "server.external_hostname": "api.example.com",
    "server.livez_grace_period": "30s",
    "server.permit_port_sharing": "true",
    "authorization.always_allow_paths": "/healthz,/metrics",
    "server.public_url": "https://k8s.example.com",
    "server.cors_allowed_origins": "//example.com$",
    "server.strict_transport_security_directives": "max-age=60,preload",
    "server.goaway_chance": "0.01",
    "server.certificate_names": "ctrlmgr.example.com,192.0.2.10",
    "server.shutdown_delay": "3s",
    "log.requests": "true",
    "server.shutdown_send_retry_after": "true",
    "server.shutdown_watch_termination_grace_period": "4s",
    "server.request_timeout": "2m",
    "server.min_request_timeout": "60",
    "server.priority_and_fairness": "false",
    "server.max_reads": "7",
    "server.max_writes": "8",
    "server.http2_max_streams_per_connection": "9",
    "server.disable_http2_serving": "true",
    "server.join": "true",
    "server.ready_file": "ready",
    "server.profiling": "false",
    "server.tracing_config_file": "tracing.yaml",
    "server.enable_aggregator_routing": "false",
    "server.aggregator_reject_forwarding_redirect": "false",
    "controllers.simulated_metrics": "false",
    "server.feature_gates": "EnvFiles=false,AllAlpha=true",
    "server.runtime_config": "storagemigration.k8s.io/v1beta1=true",
    "tls.cert_file": "server.crt",
    "tls.private_key_file": "server.key",
    "tls.sni_cert_key": "a.crt,a.key:a.example.com;b.crt,b.key",
    "tls.min_version": "VersionTLS13",
    "tls.cipher_suites": "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    "admission.enable_plugins": "AlwaysPullImages,NodeRestriction",
    "admission.disable_plugins": "PodSecurity",
    "admission.control_config_file": "admission.yaml",
    "admission.default_not_ready_toleration_seconds": "5",
    "admission.default_unreachable_toleration_seconds": "5",
    "audit.policy_file": "policy.yaml",
    "audit.keep_for": "1h",
    "audit.log_path": "-",
    "audit.log_maxsize": "7",
    "audit.log_maxbackup": "3",
    "audit.log_maxage": "30",
    "audit.log_compress": "true",
    "audit.log_mode": "batch",
    "audit.log_format": "legacy",
    "audit.log_batch_throttle_enable": "true",
    "audit.log_batch_throttle_qps": "2.5",
    "audit.log_batch_throttle_burst": "17",
    "audit.log_truncate_enabled": "true",
    "audit.log_truncate_max_event_size": "18",
    "audit.log_truncate_max_batch_size": "19",
    "audit.webhook_mode": "blocking-strict",
    "audit.webhook_batch_throttle_enable": "false",
    "audit.webhook_truncate_enabled": "true",
    "audit.webhook_truncate_max_event_size": "20",
    "audit.webhook_truncate_max_batch_size": "21",
    "audit.log_batch_buffer_size": "11",
    "audit.log_batch_max_size": "12",
    "audit.log_batch_max_wait": "3s",
    "audit.webhook_config_file": "webhook.kubeconfig",
    "audit.log_version": "audit.k8s.io/v1",
    "audit.webhook_version": "audit.k8s.io/v1",
    "audit.webhook_initial_backoff": "4s",
    "audit.webhook_batch_buffer_size": "13",
    "audit.webhook_batch_max_size": "14",
    "audit.webhook_batch_max_wait": "5s",
    "audit.webhook_batch_throttle_qps": "1.5",
    "audit.webhook_batch_throttle_burst": "16",
    "authentication.config": "authentication.yaml",
    "authentication.token_webhook_config_file": "tokens.kubeconfig",
    "authentication.token_webhook_cache_ttl": "10s",
    "authentication.token_webhook_version": "v1",
    "oidc.issuer_url": "https://issuer.example.com",
    "oidc.client_id": "here",
    "oidc.ca_file": "/elsewhere/issuer.crt",
    "oidc.username_claim": "email",
    "oidc.username_prefix": "-",
    "oidc.groups_claim": "roles",
    "oidc.groups_prefix": "oidc:",
    "oidc.signing_algs": "ES256,RS256",
    "oidc.required_claim": "hd=example.com",
    "authentication.token_auth_file": "/elsewhere/tokens.csv",
    "authentication.client_ca_file": "/elsewhere/ca.crt",
    "authentication.anonymous_auth": "false",
    "authentication.enable_bootstrap_token_auth": "true",
    "authentication.api_audiences": "here,there",
    "authentication.requestheader_client_ca_file": "/elsewhere/proxies.crt",
    "authentication.requestheader_allowed_names": "front-proxy-client",
    "authentication.requestheader_username_headers": "X-User",
    "authentication.requestheader_uid_headers": "X-Uid",
    "authentication.requestheader_group_headers": "X-Group",
    "authentication.requestheader_extra_headers_prefix": "X-Extra-",
    "authorization.mode": "RBAC",
    "authorization.config": "/etc/authorization.yaml",
    "authorization.end_watches": "false",
    "authorization.policy_file": "policies.jsonl",
    "authorization.webhook_config_file": "rights.kubeconfig",
    "authorization.webhook_version": "v1",
    "authorization.webhook_cache_authorized_ttl": "20s",
    "authorization.webhook_cache_unauthorized_ttl": "6s",
    "service_accounts.issuer": "https://issuer.example.com",
    "service_accounts.signing_key_file": "/elsewhere/sa.key",
    "service_accounts.private_key_file": "/elsewhere/legacy.key",
    "service_accounts.key_file": "/elsewhere/old.pub",
    "service_accounts.jwks_uri": "https://issuer.example.com/keys",
    "service_accounts.max_token_expiration": "2h",
    "service_accounts.extend_token_expiration": "false",
    "service_accounts.lookup": "false",
    "service.cluster_ip_range": "10.0.0.0/24,fd00::/112",
    "service.node_port_range": "31000-31999",
    "service.kubernetes_service_node_port": "31443",
    "service.endpoint_reconciler_type": "master-count",
    "service.apiserver_count": "3",
    "controllers.enabled": "*,-endpoints-controller",
    "controllers.apps": "shop:app,store:app",
    "controllers.endpointslice_updates_batch_period": "1s",
    "controllers.max_endpoints_per_slice": "50",
    "controllers.mirroring_max_endpoints_per_subset": "50",
    "controllers.mirroring_endpointslice_updates_batch_period": "2s",
    "controllers.enable_dynamic_provisioning": "false",
    "controllers.root_ca_file": "/elsewhere/ca.crt",
    "controllers.concurrent_service_endpoint_syncs": "9",
    "controllers.mirroring_concurrent_service_endpoint_syncs": "9",
    "controllers.concurrent_namespace_syncs": "9",
    "controllers.concurrent_resource_quota_syncs": "9",
    "controllers.concurrent_resourceclaim_syncs": "2",
    "controllers.concurrent_device_taint_eviction_syncs": "2",
    "controllers.attach_detach_reconcile_sync_period": "2m",
    "controllers.disable_attach_detach_reconcile_sync": "true",
    "controllers.disable_force_detach_on_timeout": "true",
    "controllers.resource_quota_sync_period": "1m",
    "controllers.concurrent_gc_syncs": "9",
    "controllers.concurrent_ttl_after_finished_syncs": "9",
    "controllers.concurrent_validating_admission_policy_status_syncs": "9",
    "controllers.concurrent_cron_job_syncs": "9",
    "controllers.concurrent_daemonset_syncs": "3",
    "controllers.concurrent_deployment_syncs": "9",
    "controllers.concurrent_replicaset_syncs": "9",
    "controllers.concurrent_rc_syncs": "9",
    "controllers.concurrent_statefulset_syncs": "9",
    "controllers.concurrent_job_syncs": "9",
    "controllers.concurrent_horizontal_pod_autoscaler_syncs": "9",
    "controllers.horizontal_pod_autoscaler_sync_period": "20s",
    "controllers.horizontal_pod_autoscaler_downscale_stabilization": "1m",
    "controllers.horizontal_pod_autoscaler_tolerance": "0.25",
    "controllers.horizontal_pod_autoscaler_cpu_initialization_period": "1m",
    "controllers.horizontal_pod_autoscaler_initial_readiness_delay": "10s",
    "controllers.proxy_client_cert_file": "/elsewhere/cert",
    "controllers.proxy_client_key_file": "/elsewhere/key",
    "controllers.concurrent_serviceaccount_token_syncs": "9",
    "controllers.legacy_service_account_token_clean_up_period": "1d",
    "controllers.cluster_signing_duration": "1h",
    **{
        f"controllers.cluster_signing_{signer}{part}_file": f"/elsewhere/{part}"
        for signer in ("", "kubelet_serving_", "kubelet_client_", "kube_apiserver_client_", "legacy_unknown_")
        for part in ("cert", "key")
    },
    "controllers.nodes": "3",
    "controllers.simulated_behaviour": "rules.yaml",
    "controllers.simulated_speed": "10",
    "controllers.simulated_tasks": "run",
    "controllers.simulated_servers": "exit 1 after 5s",
    "controllers.simulated_seed": "7",
    "controllers.simulated_load_balancer_range": "203.0.113.0/24",
    "controllers.scheduler_name": "mine",
    "controllers.scheduler_config": "scheduler.yaml",
    "controllers.allocate_node_cidrs": "true",
    "controllers.cluster_cidr": "10.1.0.0/16",
    "controllers.node_cidr_mask_size": "25",
    "controllers.node_cidr_mask_size_ipv4": "25",
    "controllers.node_cidr_mask_size_ipv6": "65",
    "controllers.cidr_allocator_type": "CloudAllocator",
    "controllers.node_monitor_period": "1s",
    "controllers.pvclaimbinder_sync_period": "1s",
    "controllers.enable_hostpath_provisioner": "true",
    "controllers.pv_recycler_pod_template_filepath_hostpath": "pod.yaml",
    "controllers.pv_recycler_minimum_timeout_hostpath": "5",
    "controllers.pv_recycler_timeout_increment_hostpath": "6",
    "controllers.pv_recycler_pod_template_filepath_nfs": "pod.yaml",
    "controllers.pv_recycler_minimum_timeout_nfs": "7",
    "controllers.pv_recycler_increment_timeout_nfs": "8",
    "controllers.concurrent_ephemeralvolume_syncs": "2",
    "controllers.node_monitor_grace_period": "10s",
    "controllers.node_startup_grace_period": "10s",
    "controllers.node_eviction_rate": "100",
    "controllers.secondary_node_eviction_rate": "10",
    "controllers.unhealthy_zone_threshold": "0.7",
    "controllers.large_cluster_size_threshold": "5",
    "controllers.concurrent_taint_evictions": "9",
    "controllers.start_interval": "1s",
    "controllers.kube_api_qps": "20",
    "controllers.kube_api_burst": "40",
    "leader_election.enabled": "false",
    "leader_election.lease_duration": "30s",
    "leader_election.renew_deadline": "20s",
    "leader_election.retry_period": "4s",
    "leader_election.resource_name": "another",
    "leader_election.resource_namespace": "default",
    "controllers.concurrent_endpoint_syncs": "3",
    "controllers.endpoint_updates_batch_period": "500ms",
    "controllers.namespace_deletion_grace": "0",
    "controllers.terminated_pod_gc_threshold": "0",
    "events.ttl": "2h",
    "watch_cache.capacity": "17",
    "compaction.every": "1h",
    "compaction.api_interval": "1m",
    "compaction.min_age": "0",
    "compaction.secrets_for": "2h",
    "compaction.min_revisions": "0",
    "compaction.resources": "{ events = { keep = 3 } }",
    "admission.allow_privileged": "false",
    "kubelet.client_certificate": "/etc/client.crt",
    "kubelet.client_key": "/etc/client.key",
    "kubelet.certificate_authority": "/etc/ca.crt",
    "kubelet.preferred_address_types": "InternalIP,Hostname",
    "kubelet.port": "10251",
    "kubelet.timeout": "3s",
    "clusters.directory": "/srv/clusters",
    "clusters.sleep_after": "90s",
    "log.level": "debug",
    "log.format": "json",
}


ONE_VALUE = {"audit.log_version", "audit.webhook_version"}
"""Settings for which only one value is valid, which is the default."""


@pytest.mark.parametrize("key", keys())
def test_every_key_can_be_set_by_its_variable(key: str) -> None:
    loaded = load({}, {variable(key): VALUES[key]})
    assert (value_of(loaded.settings, key) == value_of(Settings(), key)) is (key in ONE_VALUE)
    assert [changed for changed, origin in loaded.origins.items() if origin != "default"] == [key]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param('[log]\nlevel = "loud"', 'is \'loud\'; it must be one of "debug", "info"', id="no such word"),
        pytest.param(
            "[log]\nlevle = 1", "{file}: there is no setting 'log.levle'; did you mean 'log.level'?", id="a typo"
        ),
        pytest.param("[logs]\nlevel = 1", "{file}: there is no setting 'logs'", id="a section that does not exist"),
        pytest.param("[compaction]\nevery = 5", "{file}: compaction.every is 5; it must be a duration", id="no unit"),
        pytest.param('[compaction]\nevery = "5 min"', "it must be a duration such as", id="a duration in words"),
        pytest.param(
            "[controllers]\nconcurrent_endpoint_syncs = 0", "it must be a whole number of at least 1", id="no workers"
        ),
        pytest.param(
            "[controllers]\nconcurrent_endpoint_syncs = true", "it must be a whole number", id="a bool for a number"
        ),
        pytest.param('[server]\nlisten = "8080"', "it must be HOST:PORT", id="a port without host"),
        pytest.param('[server]\nlisten = "a:65536"', "it must be HOST:PORT", id="a port too large"),
        pytest.param('[server]\nadvertise_address = "here"', "it must be an IP address", id="no address"),
        pytest.param('[service]\ncluster_ip_range = "10.0.0.1/24"', "it must be a range", id="a range with host bits"),
        pytest.param(
            '[service]\ncluster_ip_range = "10.0.0.0/24,10.1.0.0/24"', "it must be a range", id="one family twice"
        ),
        pytest.param('[service]\nnode_port_range = "9-1"', "it must be a range of ports", id="ports backwards"),
        pytest.param("[controllers]\nenabled = [1]", "it must be a list of names", id="a list of numbers"),
        pytest.param("data_dir = 1", "data_dir is 1; it must be a text", id="a number for a path"),
        pytest.param("[compaction.resources]\nevents = 5", "it must be resources and what", id="a number for a rule"),
        pytest.param("[compaction.resources]\nevents = {kep = 5}", "it must be resources and", id="a typo in a rule"),
        pytest.param("[compaction.resources]\nevents = {keep = 0}", "it must be resources and", id="keeping nothing"),
        pytest.param("[compaction.resources]\nevents = {}", "it must be resources and", id="an empty rule"),
        pytest.param("[log", "{file}: not valid TOML", id="not TOML"),
    ],
)
def test_an_error_in_the_file_is_reported_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    file = write(tmp_path, text)
    with pytest.raises(SettingsError) as caught:
        load({}, {}, file)
    assert message.format(file=file) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"none\.toml: the settings file cannot be read"):
        load({}, {}, tmp_path / "none.toml")


def test_an_invalid_flag_is_named() -> None:
    with pytest.raises(SettingsError, match=r"^--listen is 'x'; it must be HOST:PORT"):
        load({"server.listen": "x"}, {})


def test_a_misspelled_variable_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"CTRLMGR_LOG_LEVLE .* did you mean 'CTRLMGR_LOG_LEVEL'"):
        load({}, {"CTRLMGR_LOG_LEVLE": "debug"})


def test_variables_of_kubernetes_are_ignored() -> None:
    environment = {"CTRLMGR_PORT": "tcp://10.0.0.1:80", "CTRLMGR_SERVICE_HOST": "10.0.0.1"}
    assert load({}, environment).settings == Settings()


def test_retention_rules_are_read_from_the_file_and_the_environment(tmp_path: Path) -> None:
    wanted = {"leases.coordination.k8s.io": Retention(keep=2, keep_for=3600.0), "events": Retention(keep_for=86400.0)}
    file = write(
        tmp_path,
        '[compaction.resources]\nevents = { keep_for = "1d" }\n'
        '"leases.coordination.k8s.io" = { keep = 2, keep_for = "1h" }\n',
    )
    assert load({}, {}, file).settings.compaction.resources == wanted
    inline = '{ "leases.coordination.k8s.io" = { keep = 2, keep_for = "1h" }, events = { keep_for = "1d" } }'
    assert load({}, {"CTRLMGR_COMPACTION_RESOURCES": inline}).settings.compaction.resources == wanted


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0", 0.0), ("0s", 0.0), ("250ms", 0.25), ("15s", 15.0), ("1h30m", 5400.0), ("1.5h", 5400.0), ("2d", 172800.0)],
)
def test_durations_are_parsed(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "5", "s", "-5s", "5s ", "5 s", "1h-2m", "1e3s"])
def test_an_invalid_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        parse_duration(text)


@pytest.mark.parametrize("seconds", [0.0, 0.25, 15.0, 61.0, 5400.0, 90061.001])
def test_durations_survive_a_round_trip(seconds: float) -> None:
    assert parse_duration(format_duration(seconds)) == seconds


@pytest.mark.parametrize(
    ("listen", "address"),
    [("127.0.0.1:8080", ("127.0.0.1", 8080)), ("[::1]:0", ("::1", 0)), ("localhost:80", ("localhost", 80))],
)
def test_a_listen_address_is_host_and_port(listen: str, address: tuple[str, int]) -> None:
    assert load({"server.listen": listen}, {}).settings.server.address == address


@pytest.mark.parametrize(
    ("url", "anchor"),
    [
        ("sqlite:///a/b.db", "a/b.db-anchor"),
        ("sqlite:////a/b.db", "/a/b.db-anchor"),
        ("postgresql://u:p@db:5432/log?sslmode=require", "/data/db-5432-log.anchor"),
        ("memory:", None),
        ("", "/data/ctrlmgr.db-anchor"),
    ],
)
def test_the_anchor_has_a_path_beside_each_database(url: str, anchor: str | None) -> None:
    settings = load({"database.url": url, "data_dir": "/data"}, {}).settings
    assert settings.anchor_path == (Path(anchor) if anchor else None)
    assert settings.anchor_key_path == (Path(f"{anchor}.key") if anchor else None)


def test_the_default_database_is_a_file_in_the_data_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/somebody")
    assert Settings().database_url == "sqlite:////home/somebody/.local/state/ctrlmgr/ctrlmgr.db"


def test_every_value_can_be_read_by_its_key() -> None:
    assert value_of(Settings(), "log.level") == "info"
    assert len(keys()) == len(set(map(variable, keys()))), "two keys share a variable"


def test_a_former_key_causes_a_warning_and_the_current_one_overrides_it(tmp_path: Path) -> None:
    file = write(tmp_path, "[endpoints]\nworkers = 6\n")
    loaded = load({}, {}, file)
    assert loaded.settings.of(Options).concurrent_endpoint_syncs == 6
    assert loaded.warnings == (f"{file}: endpoints.workers is called controllers.concurrent_endpoint_syncs now",)
    both = load({}, {"CTRLMGR_ENDPOINTS_WORKERS": "7", "CTRLMGR_CONTROLLERS_CONCURRENT_ENDPOINT_SYNCS": "8"})
    assert both.settings.of(Options).concurrent_endpoint_syncs == 8
    assert both.warnings == ()


def test_no_two_classes_declare_one_key() -> None:
    @dataclass(frozen=True)
    class Again:
        concurrent_gc_syncs: Annotated[int, whole(1), Setting("Taken already.")] = 1

    with pytest.raises(ValueError, match=r"declared twice: controllers\.concurrent_gc_syncs"):
        declare(Again, "controllers")

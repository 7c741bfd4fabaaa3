"""Tests of the official Python client's asynchronous API: typed, dynamic, and watches during writes."""

# The client's own functions are not annotated.
# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from kubernetes.aio import client, config, watch
from kubernetes.aio.dynamic import DynamicClient

from tests.e2e.clients import python_client as make
from tests.e2e.serving import DEADLINE, Server


@asynccontextmanager
async def connected(server: Server) -> AsyncIterator[client.ApiClient]:
    settings = client.Configuration()
    await config.load_kube_config(str(server.kubeconfig), client_configuration=settings)
    async with client.ApiClient(settings) as api:
        yield api


def test_a_watch_runs_beside_its_writer(server: Server, namespace: str) -> None:
    async def write(core: make.Api) -> None:
        await core.create_namespaced_config_map(namespace, make.config_map("web"))
        await core.patch_namespaced_config_map("web", namespace, {"data": {"key": "two"}})
        await core.delete_namespaced_config_map("web", namespace)

    async def scenario() -> list[tuple[str, str]]:
        seen = []
        async with connected(server) as api, watch.Watch() as watcher:
            core: make.Api = client.CoreV1Api(api)
            start = (await core.list_namespaced_config_map(namespace)).metadata.resource_version
            writing = asyncio.create_task(write(core))
            async for event in watcher.stream(core.list_namespaced_config_map, namespace, resource_version=start):
                seen.append((event["type"], event["object"].data["key"]))
                if event["type"] == "DELETED":
                    break
            await writing
        return seen

    seen = asyncio.run(asyncio.wait_for(scenario(), DEADLINE))
    assert seen == [("ADDED", "one"), ("MODIFIED", "two"), ("DELETED", "two")]


def test_the_dynamic_client_applies_a_discovered_kind(server: Server, namespace: str) -> None:
    async def scenario() -> tuple[str, int]:
        async with connected(server) as api:
            dynamic = await DynamicClient(api)
            services = await dynamic.resources.get(api_version="v1", kind="Service")
            body = make.service("web")
            applied = await services.server_side_apply(body=body, namespace=namespace, field_manager="tests")
            found = await services.get(namespace=namespace, label_selector="app=web")
            await services.delete(name="web", namespace=namespace)
            return applied.metadata.managedFields[0].manager, len(found.items)

    assert asyncio.run(asyncio.wait_for(scenario(), DEADLINE)) == ("tests", 1)

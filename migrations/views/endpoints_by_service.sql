-- Where each Service leads now: one row an address, of its EndpointSlices and of its Endpoints.
SELECT
    o.namespace, {text:e.body:$.metadata.labels."kubernetes.io/service-name"} AS service, o.resource, o.name,
    address.value AS address, coalesce({flag:item.value:$.conditions.ready}, 1) AS ready,
    {text:item.value:$.targetRef.kind} AS target_kind, {text:item.value:$.targetRef.name} AS target_name,
    {text:item.value:$.nodeName} AS node, {json:e.body:$.ports} AS ports,
    e.revision, {time:e.recorded_at} AS time, e.recorded_at
FROM object AS o
{event:e:o.head_revision}
CROSS JOIN {items:e.body:'endpoints':item}
CROSS JOIN {words:item.value:'addresses':address}
WHERE o.resource = 'endpointslices.discovery.k8s.io' AND NOT o.deleted
UNION ALL
SELECT
    o.namespace, o.name AS service, o.resource, o.name,
    {text:item.value:$.ip} AS address, side.ready,
    {text:item.value:$.targetRef.kind} AS target_kind, {text:item.value:$.targetRef.name} AS target_name,
    {text:item.value:$.nodeName} AS node, {json:subset.value:$.ports} AS ports,
    e.revision, {time:e.recorded_at} AS time, e.recorded_at
FROM object AS o
{event:e:o.head_revision}
CROSS JOIN (SELECT 1 AS ready, 'addresses' AS part UNION ALL SELECT 0, 'notReadyAddresses') AS side
CROSS JOIN {items:e.body:'subsets':subset}
CROSS JOIN {items:subset.value:side.part:item}
WHERE o.resource = 'endpoints' AND NOT o.deleted

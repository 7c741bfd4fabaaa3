-- Who holds which ClusterIP and node port.
SELECT
    CASE o.resource WHEN 'nodeports.internal.ctrlmgr.io' THEN 'NodePort' ELSE 'ClusterIP' END AS type,
    o.name AS value, {text:e.body:$.spec.parentRef.resource} AS owner_resource,
    {text:e.body:$.spec.parentRef.namespace} AS owner_namespace, {text:e.body:$.spec.parentRef.name} AS owner_name,
    e.revision, {time:e.recorded_at} AS time, e.recorded_at, e.actor
FROM object AS o
{event:e:o.head_revision}
WHERE o.resource IN ('ipaddresses.networking.k8s.io', 'nodeports.internal.ctrlmgr.io') AND NOT o.deleted

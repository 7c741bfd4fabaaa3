-- What existed at a revision: the columns of `objects`, but for create_revision.
-- Of an object's events take the one with the greatest `previous` not above the revision. Either it is itself not
-- above it, and is the state; or its `previous` is. So it is two probes of an index an object, however long its past.
SELECT
    o.resource, o.namespace, o.name, {text:e.body:$.metadata.uid} AS uid, e.revision,
    {time:e.recorded_at} AS time, e.recorded_at, e.actor, e.user_agent,
    {text:e.body:$.kind} AS kind, {text:e.body:$.apiVersion} AS api_version,
    {text:e.body:$.metadata.creationTimestamp} AS created_at, {json:e.body:$.metadata.labels} AS labels, e.body
FROM object AS o
{state:e:o.id}
WHERE e.type <> 3

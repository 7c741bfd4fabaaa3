-- What exists now: one row an object.
SELECT
    o.resource, o.namespace, o.name, o.uid, o.create_revision, e.revision,
    {time:e.recorded_at} AS time, e.recorded_at, e.actor, e.user_agent,
    {text:e.body:$.kind} AS kind, {text:e.body:$.apiVersion} AS api_version,
    {text:e.body:$.metadata.creationTimestamp} AS created_at, {json:e.body:$.metadata.labels} AS labels, e.body
FROM object AS o
{event:e:o.head_revision}
WHERE NOT o.deleted

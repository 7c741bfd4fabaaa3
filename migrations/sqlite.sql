-- The newest schema, for a new database. Written by scripts/generate from what the migrations make.
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);

CREATE TABLE log_epoch (
	uuid TEXT NOT NULL, 
	after_revision BIGINT NOT NULL, 
	parent_hash BLOB NOT NULL, 
	started_at BIGINT NOT NULL, 
	reason TEXT NOT NULL, 
	PRIMARY KEY (uuid)
);

CREATE TABLE log_head (
	id SMALLINT NOT NULL, 
	uuid TEXT NOT NULL, 
	revision BIGINT NOT NULL, 
	hash BLOB NOT NULL, 
	PRIMARY KEY (id)
);

CREATE TABLE object (
	id INTEGER NOT NULL, 
	resource TEXT NOT NULL, 
	namespace TEXT NOT NULL, 
	name TEXT NOT NULL, 
	uid TEXT NOT NULL, 
	create_revision BIGINT NOT NULL, 
	head_revision BIGINT NOT NULL, 
	deleted BOOLEAN NOT NULL, 
	PRIMARY KEY (id), 
	CONSTRAINT object_place UNIQUE (resource, namespace, name)
);

CREATE TABLE event (
	revision INTEGER NOT NULL, 
	object_id BIGINT NOT NULL, 
	previous BIGINT NOT NULL, 
	type SMALLINT NOT NULL, 
	recorded_at BIGINT NOT NULL, 
	actor TEXT NOT NULL, 
	user_agent TEXT NOT NULL, 
	term BIGINT NOT NULL, 
	reconcile_id BIGINT NOT NULL, 
	append_id BIGINT NOT NULL, 
	parent_hash BLOB, 
	hash BLOB NOT NULL, 
	body TEXT NOT NULL, 
	PRIMARY KEY (revision), 
	CONSTRAINT event_history UNIQUE (object_id, previous)
);

CREATE INDEX event_reconcile ON event (reconcile_id) WHERE reconcile_id != 0;

CREATE TABLE lease_term (
	lease TEXT NOT NULL, 
	term BIGINT NOT NULL, 
	PRIMARY KEY (lease)
);

CREATE TABLE compaction_floor (
	resource TEXT NOT NULL, 
	floor BIGINT NOT NULL, 
	PRIMARY KEY (resource)
);

CREATE TABLE reconcile (
	id INTEGER NOT NULL, 
	controller TEXT NOT NULL, 
	"key" TEXT NOT NULL, 
	attempt INTEGER NOT NULL, 
	started_at BIGINT NOT NULL, 
	duration BIGINT, 
	outcome TEXT, 
	message TEXT NOT NULL, 
	PRIMARY KEY (id)
);

CREATE TABLE reconcile_trigger (
	reconcile_id BIGINT NOT NULL, 
	revision BIGINT NOT NULL, 
	PRIMARY KEY (reconcile_id, revision)
)
 WITHOUT ROWID;

CREATE INDEX reconcile_trigger_revision ON reconcile_trigger (revision);

CREATE INDEX event_term ON event (term, revision) WHERE term != 0;

CREATE VIEW objects AS
-- What exists now: one row an object.
SELECT
    o.resource, o.namespace, o.name, o.uid, o.create_revision, e.revision,
    strftime('%Y-%m-%dT%H:%M:%S', e.recorded_at / 1000000, 'unixepoch') || printf('.%06dZ', e.recorded_at % 1000000) AS time, e.recorded_at, e.actor, e.user_agent,
    json_extract(e.body, '$.kind') AS kind, json_extract(e.body, '$.apiVersion') AS api_version,
    json_extract(e.body, '$.metadata.creationTimestamp') AS created_at, json_extract(e.body, '$.metadata.labels') AS labels, e.body
FROM object AS o
JOIN event AS e ON e.revision = o.head_revision
WHERE NOT o.deleted;

CREATE VIEW timeline AS
-- The log as it was written: one row an event, without its content.
SELECT
    e.revision, strftime('%Y-%m-%dT%H:%M:%S', e.recorded_at / 1000000, 'unixepoch') || printf('.%06dZ', e.recorded_at % 1000000) AS time, e.recorded_at, CASE e.type WHEN 1 THEN 'ADDED' WHEN 2 THEN 'MODIFIED' WHEN 3 THEN 'DELETED' END AS type,
    o.resource, o.namespace, o.name, e.actor, e.user_agent, e.term,
    e.reconcile_id, r.controller, r.key, r.attempt, (SELECT '[' || group_concat(g.revision, ',') || ']' FROM (SELECT t.revision FROM reconcile_trigger AS t WHERE t.reconcile_id = e.reconcile_id ORDER BY t.revision) AS g) AS triggers
FROM event AS e
JOIN object AS o ON o.id = e.object_id
LEFT JOIN reconcile AS r ON r.id = e.reconcile_id;

CREATE VIEW history AS
-- What became of each object: one row an event, with what it changed.
SELECT
    o.resource, o.namespace, o.name, e.revision, e.previous, CASE e.type WHEN 1 THEN 'ADDED' WHEN 2 THEN 'MODIFIED' WHEN 3 THEN 'DELETED' END AS type,
    strftime('%Y-%m-%dT%H:%M:%S', e.recorded_at / 1000000, 'unixepoch') || printf('.%06dZ', e.recorded_at % 1000000) AS time, e.recorded_at, e.actor, e.user_agent, e.term,
    e.reconcile_id, r.controller, r.key, r.attempt,
    CASE WHEN e.type <> 1 THEN (
        SELECT json_group_array(json_object('path', d.path, 'from', json(d.was), 'to', json(d.now))) FROM (
            SELECT leaf.path, max(leaf.was) AS was, max(leaf.now) AS now FROM (
                SELECT w.fullkey AS path, CASE w.type WHEN 'text' THEN json_quote(w.value) WHEN 'true' THEN 'true'
                    WHEN 'false' THEN 'false' WHEN 'null' THEN 'null' ELSE CAST(w.value AS TEXT) END AS was, NULL AS now
                FROM json_tree(before.body) AS w WHERE w.type NOT IN ('object', 'array') OR w.value IN ('{}', '[]')
                UNION ALL
                SELECT n.fullkey, NULL, CASE n.type WHEN 'text' THEN json_quote(n.value) WHEN 'true' THEN 'true'
                    WHEN 'false' THEN 'false' WHEN 'null' THEN 'null' ELSE CAST(n.value AS TEXT) END
                FROM json_tree(e.body) AS n WHERE n.type NOT IN ('object', 'array') OR n.value IN ('{}', '[]')
            ) AS leaf
            WHERE before.body IS NOT NULL AND substr(leaf.path, 1, 24) <> '$.metadata.managedFields'
            GROUP BY leaf.path HAVING max(leaf.was) IS NOT max(leaf.now) ORDER BY leaf.path
        ) AS d) END AS changes, e.body
FROM object AS o
JOIN event AS e ON e.object_id = o.id
LEFT JOIN event AS before ON before.revision = e.previous
LEFT JOIN reconcile AS r ON r.id = e.reconcile_id;

CREATE VIEW causes AS
-- What led to what: one row for each event that a controller wrote and each change that its reconcile answered.
SELECT
    e.revision, strftime('%Y-%m-%dT%H:%M:%S', e.recorded_at / 1000000, 'unixepoch') || printf('.%06dZ', e.recorded_at % 1000000) AS time, CASE e.type WHEN 1 THEN 'ADDED' WHEN 2 THEN 'MODIFIED' WHEN 3 THEN 'DELETED' END AS type, o.resource, o.namespace, o.name,
    e.actor, e.term, e.reconcile_id, r.controller, r.key, r.attempt,
    t.revision AS cause_revision, strftime('%Y-%m-%dT%H:%M:%S', c.recorded_at / 1000000, 'unixepoch') || printf('.%06dZ', c.recorded_at % 1000000) AS cause_time, CASE c.type WHEN 1 THEN 'ADDED' WHEN 2 THEN 'MODIFIED' WHEN 3 THEN 'DELETED' END AS cause_type,
    p.resource AS cause_resource, p.namespace AS cause_namespace, p.name AS cause_name,
    c.actor AS cause_actor, c.user_agent AS cause_user_agent, c.reconcile_id AS cause_reconcile_id
FROM event AS e
JOIN object AS o ON o.id = e.object_id
JOIN reconcile AS r ON r.id = e.reconcile_id
JOIN reconcile_trigger AS t ON t.reconcile_id = e.reconcile_id
LEFT JOIN event AS c ON c.revision = t.revision
LEFT JOIN object AS p ON p.id = c.object_id
WHERE e.reconcile_id <> 0;

CREATE VIEW reconciles AS
-- The reconciles that wrote something: what made them run, how they ended, what they wrote.
SELECT
    r.id, r.controller, r.key, r.attempt, strftime('%Y-%m-%dT%H:%M:%S', r.started_at / 1000000, 'unixepoch') || printf('.%06dZ', r.started_at % 1000000) AS time, r.started_at, r.duration,
    r.outcome, r.message, (SELECT '[' || group_concat(g.revision, ',') || ']' FROM (SELECT t.revision FROM reconcile_trigger AS t WHERE t.reconcile_id = r.id ORDER BY t.revision) AS g) AS triggers,
    (SELECT count(*) FROM reconcile_trigger AS t WHERE t.reconcile_id = r.id) AS trigger_count,
    (SELECT max(t.revision) FROM reconcile_trigger AS t WHERE t.reconcile_id = r.id) AS last_trigger,
    (SELECT count(*) FROM event AS e WHERE e.reconcile_id = r.id AND e.reconcile_id <> 0) AS writes,
    (SELECT min(e.revision) FROM event AS e WHERE e.reconcile_id = r.id AND e.reconcile_id <> 0) AS first_write,
    (SELECT max(e.revision) FROM event AS e WHERE e.reconcile_id = r.id AND e.reconcile_id <> 0) AS last_write
FROM reconcile AS r;

CREATE VIEW leaders AS
-- The terms of leaders: from the append that took over to the last one that carried the term.
SELECT
    s.term, o.name AS lease, json_extract(lease.body, '$.spec.holderIdentity') AS holder, first.actor,
    s.first_revision, s.last_revision, strftime('%Y-%m-%dT%H:%M:%S', first.recorded_at / 1000000, 'unixepoch') || printf('.%06dZ', first.recorded_at % 1000000) AS from_time, strftime('%Y-%m-%dT%H:%M:%S', last.recorded_at / 1000000, 'unixepoch') || printf('.%06dZ', last.recorded_at % 1000000) AS to_time,
    s.writes
FROM (
    SELECT e.term, min(e.revision) AS first_revision, max(e.revision) AS last_revision, count(*) AS writes
    FROM event AS e
    WHERE e.term <> 0
    GROUP BY e.term
) AS s
JOIN event AS first ON first.revision = s.first_revision
JOIN event AS last ON last.revision = s.last_revision
LEFT JOIN object AS o ON o.id = first.object_id AND o.resource = 'leases.coordination.k8s.io'
LEFT JOIN event AS lease ON lease.revision = s.first_revision AND o.id IS NOT NULL;

CREATE VIEW allocations AS
-- Who holds which ClusterIP and node port.
SELECT
    CASE o.resource WHEN 'nodeports.internal.ctrlmgr.io' THEN 'NodePort' ELSE 'ClusterIP' END AS type,
    o.name AS value, json_extract(e.body, '$.spec.parentRef.resource') AS owner_resource,
    json_extract(e.body, '$.spec.parentRef.namespace') AS owner_namespace, json_extract(e.body, '$.spec.parentRef.name') AS owner_name,
    e.revision, strftime('%Y-%m-%dT%H:%M:%S', e.recorded_at / 1000000, 'unixepoch') || printf('.%06dZ', e.recorded_at % 1000000) AS time, e.recorded_at, e.actor
FROM object AS o
JOIN event AS e ON e.revision = o.head_revision
WHERE o.resource IN ('ipaddresses.networking.k8s.io', 'nodeports.internal.ctrlmgr.io') AND NOT o.deleted;

CREATE VIEW endpoints_by_service AS
-- Where each Service leads now: one row an address, of its EndpointSlices and of its Endpoints.
SELECT
    o.namespace, json_extract(e.body, '$.metadata.labels."kubernetes.io/service-name"') AS service, o.resource, o.name,
    address.value AS address, coalesce(json_extract(item.value, '$.conditions.ready'), 1) AS ready,
    json_extract(item.value, '$.targetRef.kind') AS target_kind, json_extract(item.value, '$.targetRef.name') AS target_name,
    json_extract(item.value, '$.nodeName') AS node, json_extract(e.body, '$.ports') AS ports,
    e.revision, strftime('%Y-%m-%dT%H:%M:%S', e.recorded_at / 1000000, 'unixepoch') || printf('.%06dZ', e.recorded_at % 1000000) AS time, e.recorded_at
FROM object AS o
JOIN event AS e ON e.revision = o.head_revision
CROSS JOIN json_each(
        CASE json_type(e.body, '$.' || 'endpoints') WHEN 'array' THEN json_extract(e.body, '$.' || 'endpoints') ELSE '[]' END) AS item
CROSS JOIN json_each(
        CASE json_type(item.value, '$.' || 'addresses') WHEN 'array' THEN json_extract(item.value, '$.' || 'addresses') ELSE '[]' END) AS address
WHERE o.resource = 'endpointslices.discovery.k8s.io' AND NOT o.deleted
UNION ALL
SELECT
    o.namespace, o.name AS service, o.resource, o.name,
    json_extract(item.value, '$.ip') AS address, side.ready,
    json_extract(item.value, '$.targetRef.kind') AS target_kind, json_extract(item.value, '$.targetRef.name') AS target_name,
    json_extract(item.value, '$.nodeName') AS node, json_extract(subset.value, '$.ports') AS ports,
    e.revision, strftime('%Y-%m-%dT%H:%M:%S', e.recorded_at / 1000000, 'unixepoch') || printf('.%06dZ', e.recorded_at % 1000000) AS time, e.recorded_at
FROM object AS o
JOIN event AS e ON e.revision = o.head_revision
CROSS JOIN (SELECT 1 AS ready, 'addresses' AS part UNION ALL SELECT 0, 'notReadyAddresses') AS side
CROSS JOIN json_each(
        CASE json_type(e.body, '$.' || 'subsets') WHEN 'array' THEN json_extract(e.body, '$.' || 'subsets') ELSE '[]' END) AS subset
CROSS JOIN json_each(
        CASE json_type(subset.value, '$.' || side.part) WHEN 'array' THEN json_extract(subset.value, '$.' || side.part) ELSE '[]' END) AS item
WHERE o.resource = 'endpoints' AND NOT o.deleted;

CREATE VIEW hot_objects AS
-- How often each object was written, deleted ones included.
SELECT
    o.resource, o.namespace, o.name, s.writes, o.create_revision, o.head_revision,
    CASE WHEN o.deleted THEN 0 ELSE 1 END AS existing
FROM (SELECT e.object_id, count(*) AS writes FROM event AS e GROUP BY e.object_id) AS s
JOIN object AS o ON o.id = s.object_id;

CREATE TABLE log_import (
	after_revision BIGINT NOT NULL, 
	last_revision BIGINT NOT NULL, 
	PRIMARY KEY (after_revision)
);

CREATE TABLE failure (
	controller TEXT NOT NULL, 
	"key" TEXT NOT NULL, 
	since BIGINT NOT NULL, 
	last_at BIGINT NOT NULL, 
	attempts INTEGER NOT NULL, 
	kind TEXT NOT NULL, 
	error TEXT NOT NULL, 
	traceback TEXT NOT NULL, 
	next_retry_at BIGINT, 
	ended_at BIGINT, 
	PRIMARY KEY (controller, "key", since)
);

CREATE INDEX failure_last ON failure (last_at);

CREATE TABLE append_trace (
	append_id BIGINT NOT NULL, 
	trace_context TEXT NOT NULL, 
	PRIMARY KEY (append_id)
);

CREATE TABLE data_key (
	id TEXT NOT NULL, 
	resource TEXT NOT NULL, 
	wrapped TEXT NOT NULL, 
	created_at BIGINT NOT NULL, 
	wrapped_at BIGINT NOT NULL, 
	PRIMARY KEY (id)
);

CREATE TABLE schema_support (
	oldest TEXT NOT NULL, 
	PRIMARY KEY (oldest)
);

INSERT INTO alembic_version (version_num) VALUES ('0009');

INSERT INTO schema_support (oldest) VALUES ('0008')

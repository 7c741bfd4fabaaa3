-- Commits a group of appends as one statement in autocommit mode. Each append is conditional and atomic by itself.
--
-- Guarantees:
-- - The call is one round trip. The statement itself locks and unlocks the row of log_head, so a client that hangs or
--   dies during its call blocks no other client.
-- - Revisions have no gaps and are in commit order, because a call assigns them under the lock of log_head, which the
--   database holds until the commit. The call reads everything that it checks an append against after it has the lock.
-- - A refused append changes nothing, and has no effect on the other appends of its group.
-- - If a client sends a call twice with the same append ids and the same `known`, the events are written once, in
--   whichever order the two calls run: the second call finds the events of the first. Therefore a client may retry a
--   call while the first try, whose connection is lost, still waits for the lock.
--
-- The rules for refusing an append are those of ctrlmgr/eventlog/optimistic_concurrency.py. The hash chain is that of
-- hash_chain.py. The contract tests compare the three implementations.
--
-- Arguments:
-- known                          a revision that the log had reached before the client first sent one of the appends
-- append_ids … user_agents       one element for each append: sizes contains the number of its proposals, leases is '' if
--                                the append has no fence; leases, terms, takeovers and reconcile_ids may be null if no
--                                append has a value
-- resources, namespaces, names   one element for each place, which is an object's identity; all places differ; proposals
--                                change the first `touched` places, and the call only reads the others
-- owners … bodies                one element for each proposal, in the order of the appends: owners is the number of its
--                                append and places the number of its place, both from 1; expecteds is -1 for "any revision"
-- withins, within_revisions      null, or one element for each proposal: the place of its Namespace (0 if the Namespace
--                                does not matter), and the revision that the Namespace must still have
-- causes                         null, or a JSON array of {append, id, controller, key, attempt, started_at, triggers}
-- outcomes                       null, or a JSON array of {id, duration, result, message}
--
-- Results:
-- verdicts                       one element for each append: 0 ok, 1 already exists, 2 not found, 3 conflict, 4 fenced,
--                                5 the Namespace has changed, 6 the Namespace does not exist
-- culprits                       the number of the refused proposal; null if the fence refused the append or none was
--                                refused
-- actuals                        for a conflict, the revision of the object or Namespace; for a fenced append, the term of
--                                the lease; otherwise null
-- revisions, previouses, hashes  one element for each proposal; null if the append was refused
--
-- Errors: CM001 means that the log is older than `known`; CM002 means that a compaction has passed `known`. In both
-- cases, the call has written nothing.
CREATE FUNCTION log_append(
    known bigint,
    append_ids bigint[],
    sizes integer[],
    leases text[],
    terms bigint[],
    takeovers boolean[],
    reconcile_ids bigint[],
    recorded_ats bigint[],
    actors text[],
    user_agents text[],
    resources text[],
    namespaces text[],
    names text[],
    owners integer[],
    places integer[],
    types integer[],
    uids text[],
    expecteds bigint[],
    digests bytea[],
    bodies text[],
    touched integer,
    withins integer[],
    within_revisions bigint[],
    causes json,
    outcomes json,
    OUT head bigint,
    OUT verdicts integer[],
    OUT culprits integer[],
    OUT actuals bigint[],
    OUT revisions bigint[],
    OUT previouses bigint[],
    OUT hashes bytea[]
) LANGUAGE plpgsql VOLATILE
-- PostgreSQL plans each statement once for each connection, perhaps while the tables are still empty. The plans must
-- also be fast for full tables, so these settings force plans that use an index for each place. With these settings, the
-- planner estimates high costs for scans that it cannot avoid; jit is off, so that it does not compile them.
SET jit = off
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
    start bigint;           -- the head before this call
    chain bytea;            -- the hash at `head`
    already bigint[];       -- appends that an earlier try has committed
    -- One element for each place: the id of its row in `object` (null if it has none), and the state of its object after
    -- the proposals that were accepted so far.
    ids bigint[];
    heads bigint[];         -- 0: the object has never existed
    exist boolean[];
    births bigint[];
    -- The state before an append, which the call restores if a later proposal of the append is refused.
    head_before bigint;
    chain_before bytea;
    heads_before bigint[];
    exist_before boolean[];
    births_before bigint[];
    lease text := '';       -- the lease that was read last, and its term
    term_now bigint;
    unfenced boolean;       -- no fence refuses an append, and no append is a takeover
    plain boolean;          -- each place is changed once and no proposal is refused, so the faster branch works
    place integer;
    verdict integer;
    first integer;
    last integer := 0;
    oldest_new bigint;      -- rows of `object` from this id on are new
    newest_id bigint;
BEGIN
    -- At a stricter isolation level, a read after the lock would return data from before the lock.
    IF current_setting('transaction_isolation') <> 'read committed' THEN
        RAISE EXCEPTION USING ERRCODE = '25001', MESSAGE = 'log_append needs READ COMMITTED';
    END IF;

    -- This is a separate statement, because a statement reads a snapshot from before its wait for a lock. The snapshot of
    -- the next statement is newer than the lock.
    SELECT h.revision, h.hash INTO STRICT start, chain FROM log_head h WHERE h.id = 1 FOR UPDATE;
    head := start;

    IF known > start THEN
        RAISE EXCEPTION USING ERRCODE = 'CM001', MESSAGE = 'the log is older than its writer';
    ELSIF known < start THEN
        -- Another process, or an earlier try of the same appends, has written since then.
        IF EXISTS (SELECT FROM compaction_floor f WHERE f.floor > known) THEN
            RAISE EXCEPTION USING ERRCODE = 'CM002', MESSAGE = 'compaction has passed what the writer knows';
        END IF;
        SELECT array_agg(e.append_id) INTO already
        FROM event e WHERE e.revision > known AND e.append_id = ANY (append_ids);
    END IF;

    unfenced := leases IS NULL OR NOT EXISTS (
        SELECT FROM unnest(leases, terms, takeovers) f(lease, term, takeover)
        LEFT JOIN lease_term t ON t.lease = f.lease
        WHERE f.lease <> '' AND (f.takeover OR f.term <> coalesce(t.term, 0)));

    -- If each place is changed once, a place and its proposal have the same number.
    SELECT array_agg(s.id), array_agg(s.head), array_agg(s.exist), array_agg(s.birth),
           cardinality(places) = touched AND already IS NULL AND unfenced AND bool_and(
               CASE WHEN s.type IS NULL THEN true
                    WHEN s.type = 1 THEN NOT s.exist
                    ELSE s.exist AND (s.expected < 0 OR s.expected = s.head) END)
    INTO ids, heads, exist, births, plain
    FROM (
        SELECT o.id, coalesce(o.head_revision, 0) AS head, coalesce(NOT o.deleted, false) AS exist,
               o.create_revision AS birth, p.type, p.expected
        FROM unnest(resources, namespaces, names, types, expecteds) WITH ORDINALITY
             p(resource, namespace, name, type, expected, number)
        LEFT JOIN object o ON o.resource = p.resource AND o.namespace = p.namespace AND o.name = p.name
        ORDER BY p.number
    ) s;

    IF plain AND withins IS NOT NULL THEN
        -- If the group itself changes the Namespace, the slower branch, which checks each append separately, must run.
        plain := NOT EXISTS (
            SELECT FROM unnest(withins, within_revisions) w(place, revision)
            WHERE w.place > 0 AND (w.place <= touched OR NOT exist[w.place] OR heads[w.place] <> w.revision));
    END IF;

    verdicts := array_fill(0, ARRAY[cardinality(append_ids)]);
    culprits := array_fill(NULL::integer, ARRAY[cardinality(append_ids)]);
    actuals := culprits;
    revisions := array_fill(NULL::bigint, ARRAY[cardinality(places)]);
    previouses := revisions;
    hashes := array_fill(NULL::bytea, ARRAY[cardinality(places)]);

    IF plain THEN
        previouses := heads[1:touched];
        FOR i IN 1 .. cardinality(places) LOOP
            head := head + 1;
            chain := sha256(chain || int8send(head) || int8send(previouses[i]) || digests[i]);
            hashes[i] := chain;
        END LOOP;
        revisions := ARRAY(SELECT generate_series(start + 1, head));
        heads := revisions;
        births := ARRAY(SELECT CASE WHEN p.type = 1 THEN p.revision ELSE p.birth END
                        FROM unnest(types, revisions, births) p(type, revision, birth));
    ELSE
        FOR a IN 1 .. cardinality(append_ids) LOOP
            first := last + 1;
            last := last + sizes[a];

            IF append_ids[a] = ANY (already) THEN
                revisions[first:last] := ARRAY(SELECT e.revision FROM event e WHERE e.revision > known
                                               AND e.append_id = append_ids[a] ORDER BY e.revision);
                previouses[first:last] := ARRAY(SELECT e.previous FROM event e WHERE e.revision > known
                                                AND e.append_id = append_ids[a] ORDER BY e.revision);
                hashes[first:last] := ARRAY(SELECT e.hash FROM event e WHERE e.revision > known
                                            AND e.append_id = append_ids[a] ORDER BY e.revision);
                CONTINUE;
            END IF;

            IF leases[a] <> '' THEN
                IF lease <> leases[a] THEN
                    lease := leases[a];
                    term_now := coalesce((SELECT t.term FROM lease_term t WHERE t.lease = leases[a]), 0);
                END IF;
                IF (CASE WHEN takeovers[a] THEN terms[a] <= term_now ELSE terms[a] <> term_now END) THEN
                    verdicts[a] := 4;
                    actuals[a] := term_now;
                    CONTINUE;
                END IF;
            END IF;

            IF first < last THEN
                head_before := head;
                chain_before := chain;
                heads_before := heads;
                exist_before := exist;
                births_before := births;
            END IF;
            FOR i IN first .. last LOOP
                place := places[i];
                verdict := CASE WHEN types[i] = 1 THEN CASE WHEN exist[place] THEN 1 ELSE 0 END
                                WHEN NOT exist[place] THEN 2
                                WHEN expecteds[i] >= 0 AND expecteds[i] <> heads[place] THEN 3
                                ELSE 0 END;
                IF verdict = 0 AND withins[i] > 0 THEN
                    verdict := CASE WHEN NOT exist[withins[i]] THEN 6
                                    WHEN heads[withins[i]] <> within_revisions[i] THEN 5
                                    ELSE 0 END;
                END IF;
                IF verdict > 0 THEN
                    verdicts[a] := verdict;
                    culprits[a] := i;
                    IF verdict = 3 THEN
                        actuals[a] := heads[place];
                    ELSIF verdict = 5 THEN
                        actuals[a] := heads[withins[i]];
                    END IF;
                    IF i > first THEN
                        head := head_before;
                        chain := chain_before;
                        heads := heads_before;
                        exist := exist_before;
                        births := births_before;
                        revisions[first:last] := array_fill(NULL::bigint, ARRAY[sizes[a]]);
                    END IF;
                    EXIT;
                END IF;
                head := head + 1;
                chain := sha256(chain || int8send(head) || int8send(heads[place]) || digests[i]);
                revisions[i] := head;
                previouses[i] := heads[place];
                hashes[i] := chain;
                heads[place] := head;
                exist[place] := types[i] <> 3;
                IF types[i] = 1 THEN
                    births[place] := head;
                END IF;
            END LOOP;

            IF takeovers[a] AND verdicts[a] = 0 THEN
                term_now := terms[a];
                INSERT INTO lease_term AS t (lease, term) VALUES (leases[a], terms[a])
                ON CONFLICT ON CONSTRAINT lease_term_pkey DO UPDATE SET term = excluded.term;
            END IF;
        END LOOP;
    END IF;

    IF head > start THEN
        oldest_new := coalesce((SELECT max(o.id) FROM object o), 0) + 1;
        newest_id := oldest_new - 1;
        IF array_position(ids, NULL) IS NOT NULL THEN
            FOR p IN 1 .. cardinality(ids) LOOP
                IF ids[p] IS NULL AND heads[p] > 0 THEN
                    newest_id := newest_id + 1;
                    ids[p] := newest_id;
                END IF;
            END LOOP;
        END IF;
        INSERT INTO event (revision, object_id, previous, type, recorded_at, actor, user_agent, term, reconcile_id,
                           append_id, hash, body)
        SELECT p.revision, ids[p.place], p.previous, p.type, recorded_ats[p.owner], actors[p.owner],
               user_agents[p.owner], coalesce(terms[p.owner], 0), coalesce(reconcile_ids[p.owner], 0),
               append_ids[p.owner], p.hash, p.body
        FROM unnest(revisions, previouses, hashes, types, owners, places, bodies)
             p(revision, previous, hash, type, owner, place, body)
        WHERE p.revision > start;
        -- The row of a place describes the newest event of the place in this group.
        IF newest_id >= oldest_new THEN
            INSERT INTO object (id, resource, namespace, name, uid, create_revision, head_revision, deleted)
            SELECT ids[p.place], resources[p.place], namespaces[p.place], names[p.place], p.uid, births[p.place],
                   p.revision, p.type = 3
            FROM unnest(revisions, types, places, uids) p(revision, type, place, uid)
            WHERE p.revision > start AND p.revision = heads[p.place] AND ids[p.place] >= oldest_new;
        END IF;
        IF newest_id - oldest_new + 1 < touched THEN
            UPDATE object o
            SET uid = p.uid, create_revision = births[p.place], head_revision = p.revision, deleted = p.type = 3
            FROM unnest(revisions, types, places, uids) p(revision, type, place, uid)
            WHERE p.revision > start AND p.revision = heads[p.place] AND ids[p.place] < oldest_new
                  AND o.id = ids[p.place];
        END IF;
        UPDATE log_head h SET revision = head, hash = chain WHERE h.id = 1;
        PERFORM pg_notify('ctrlmgr', head::text);
    END IF;

    IF causes IS NOT NULL THEN
        INSERT INTO reconcile (id, controller, key, attempt, started_at, message)
        SELECT c.id, c.controller, c.key, c.attempt, c.started_at, ''
        FROM json_to_recordset(causes)
             c(append integer, id bigint, controller text, key text, attempt integer, started_at bigint)
        WHERE verdicts[c.append] = 0
        ON CONFLICT DO NOTHING;
        INSERT INTO reconcile_trigger (reconcile_id, revision)
        SELECT c.id, t.revision::bigint
        FROM json_to_recordset(causes) c(append integer, id bigint, triggers json),
             json_array_elements_text(c.triggers) t(revision)
        WHERE verdicts[c.append] = 0
        ON CONFLICT DO NOTHING;
    END IF;
    IF outcomes IS NOT NULL THEN
        UPDATE reconcile r SET duration = o.duration, outcome = o.result, message = o.message
        FROM json_to_recordset(outcomes) o(id bigint, duration bigint, result text, message text)
        WHERE r.id = o.id;
    END IF;
END $$;

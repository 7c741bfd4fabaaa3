-- Who works with an event log, and with how much power. Once a cluster, as a superuser, in any database; then
--
--     createdb --owner ctrlmgr_owner ctrlmgr
--     psql ctrlmgr --file grants.sql
--
-- and a password for each (`\password ctrlmgr_serve` in psql).

-- Makes and changes the schema: `ctrlmgr migrate`, nothing else.
CREATE ROLE ctrlmgr_owner LOGIN;

-- `ctrlmgr serve`, `compact` and `restore`: reads and writes rows.
CREATE ROLE ctrlmgr_serve LOGIN;
ALTER ROLE ctrlmgr_serve SET lock_timeout = '4s';
ALTER ROLE ctrlmgr_serve SET idle_in_transaction_session_timeout = '60s';

-- People and programs that ask questions: `ctrlmgr sql`, `psql`, dashboards.
CREATE ROLE ctrlmgr_reader LOGIN CONNECTION LIMIT 20;
ALTER ROLE ctrlmgr_reader SET default_transaction_read_only = on;
ALTER ROLE ctrlmgr_reader SET statement_timeout = '5min';
ALTER ROLE ctrlmgr_reader SET idle_in_transaction_session_timeout = '60s';

-- What each role may do in the log's database; as a superuser, before the first `ctrlmgr migrate`. It holds for
-- everything that later migrations make, too.

REVOKE ALL ON SCHEMA public FROM PUBLIC;
GRANT USAGE, CREATE ON SCHEMA public TO ctrlmgr_owner;
GRANT USAGE ON SCHEMA public TO ctrlmgr_serve, ctrlmgr_reader;

ALTER DEFAULT PRIVILEGES FOR ROLE ctrlmgr_owner IN SCHEMA public
    GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO ctrlmgr_serve;
ALTER DEFAULT PRIVILEGES FOR ROLE ctrlmgr_owner IN SCHEMA public
    GRANT SELECT ON TABLES TO ctrlmgr_reader;

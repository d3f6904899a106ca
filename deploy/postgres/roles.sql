-- The roles of Holdfast's processes, for a superuser or a role with CREATEROLE. Passwords come from the environment, where
-- other users of the machine don't see them; psql sends them to the server as they are, so mind its log_statement:
--
--   API_PASSWORD=… WORKER_PASSWORD=… psql -f roles.sql postgres
--
-- `holdfast migrate` makes the two group roles itself where its own role may; what they may do is in the migrations.
-- Migrations and operators' commands log in as the owner of the database, which is neither of these. What is there
-- already stays as it is.

\set ON_ERROR_STOP on
\set api_password `printf %s "$API_PASSWORD"`
\set worker_password `printf %s "$WORKER_PASSWORD"`

SELECT format('CREATE ROLE %I NOLOGIN', name)
  FROM unnest(ARRAY['holdfast_api', 'holdfast_worker']) AS name
 WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = name) \gexec

-- The logins, each if there is a password for it: HOLDFAST_DATABASE_URL of the API names the first, that of workers and
-- repair the second. None may be a superuser, have BYPASSRLS, own the tables or be a member of the other's group:
-- row-level security wouldn't hold it.
SELECT format('CREATE ROLE %I LOGIN PASSWORD %L IN ROLE %I', login, password, member)
  FROM (VALUES ('holdfast_api_login', :'api_password', 'holdfast_api'),
               ('holdfast_worker_login', :'worker_password', 'holdfast_worker')) AS l (login, password, member)
 WHERE password <> '' AND NOT EXISTS (SELECT FROM pg_roles WHERE rolname = login) \gexec

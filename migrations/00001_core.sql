-- +goose Up

CREATE TABLE workspaces (
    id              uuid PRIMARY KEY,
    name            text NOT NULL UNIQUE CHECK (name <> ''),
    metered         boolean NOT NULL DEFAULT true,
    -- Keys the fingerprints of this workspace's commands: without it a stored fingerprint confirms no guess.
    fingerprint_key bytea NOT NULL CHECK (octet_length(fingerprint_key) = 32),
    lease_cap       integer CHECK (lease_cap > 0),
    max_pending     integer CHECK (max_pending > 0),
    -- Requests a minute over all keys; null is the service's default.
    rate_limit      integer CHECK (rate_limit > 0),
    -- What the workspace adds to how its conversations are read: {"instructions": "…", "categories": [{"name": "…", "description": "…"}]}.
    extraction      json NOT NULL DEFAULT '{}',
    suspended_at    timestamptz,
    -- Nothing of it is claimed; what it asks for is accepted as ever.
    paused_at       timestamptz,
    -- The task that deletes the workspace: from its acceptance on nothing of the workspace begins. When it has ended the
    -- row stays as the head of the workspace's books, under a name that says nothing.
    deletion        uuid,
    deleted_at      timestamptz CHECK (deleted_at IS NULL OR deletion IS NOT NULL),
    created_at      timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE TABLE api_keys (
    id           text PRIMARY KEY CHECK (length(id) = 12),
    workspace_id uuid NOT NULL,
    -- What an operator asked for the key with: one reference is one key. Null for a key that was asked for without.
    reference    text CHECK (reference <> ''),
    name         text NOT NULL DEFAULT '',
    secret_hash  bytea NOT NULL CHECK (octet_length(secret_hash) = 32),
    scopes       text[] NOT NULL,
    -- Requests a minute with this key; null is no limit beside its workspace's.
    rate_limit   integer CHECK (rate_limit > 0),
    created_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    expires_at   timestamptz,
    revoked_at   timestamptz,
    UNIQUE (workspace_id, reference)
);

-- One (workspace, key) is one command over all kinds of write (I1). A manual retry's key names the task it retries.
CREATE TABLE idempotency_keys (
    workspace_id        uuid NOT NULL,
    key_hash            bytea NOT NULL CHECK (octet_length(key_hash) = 32),
    fingerprint         bytea NOT NULL CHECK (octet_length(fingerprint) = 32),
    fingerprint_version smallint NOT NULL,
    task_id             uuid NOT NULL,
    retry               boolean NOT NULL DEFAULT false,
    PRIMARY KEY (workspace_id, key_hash)
);
CREATE INDEX idempotency_keys_retry ON idempotency_keys (task_id) WHERE retry;

-- What payloads are sealed with: a key of a workspace for one UTC day, or without a day until nothing refers to it,
-- wrapped by a master key that the database never sees.
CREATE TABLE data_keys (
    id           uuid PRIMARY KEY,
    workspace_id uuid NOT NULL,
    day          date,
    master_key   text NOT NULL CHECK (master_key <> ''),
    wrapped      bytea NOT NULL CHECK (octet_length(wrapped) = 60),
    created_at   timestamptz NOT NULL,
    UNIQUE NULLS NOT DISTINCT (workspace_id, day)
);
CREATE INDEX data_keys_master ON data_keys (master_key, id);

-- The data key that stored bytes are sealed with, null for plain ones: a mark, and then its id.
CREATE FUNCTION data_key_of(stored bytea) RETURNS uuid LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN octet_length(stored) >= 48 AND substring(stored FROM 1 FOR 4) = '\x00484601'::bytea
            THEN encode(substring(stored FROM 5 FOR 16), 'hex')::uuid END;

-- Every acceptance changes the row of its lane and no index: a page keeps room for that.
CREATE TABLE lanes (
    workspace_id     uuid NOT NULL,
    lane             bytea NOT NULL CHECK (octet_length(lane) = 32),
    next_seq         bigint NOT NULL,
    last_accepted_at timestamptz NOT NULL,
    PRIMARY KEY (workspace_id, lane)
) WITH (fillfactor = 70);

CREATE TABLE tasks (
    id               uuid PRIMARY KEY,
    workspace_id     uuid NOT NULL,
    kind             text NOT NULL,
    status           text NOT NULL CHECK (status IN ('pending', 'running', 'succeeded', 'failed')),
    stage            text NOT NULL CHECK (stage IN ('accepted', 'committed', 'projected')),
    generation       integer NOT NULL DEFAULT 1 CHECK (generation >= 1),
    claims           integer NOT NULL DEFAULT 0 CHECK (claims >= 0),
    -- Claims of this generation that were not given back: they tell RETRYING from PENDING.
    starts           integer NOT NULL DEFAULT 0 CHECK (starts >= 0),
    crashes          integer NOT NULL DEFAULT 0 CHECK (crashes >= 0),
    spent            jsonb NOT NULL DEFAULT '{}',
    run_after        timestamptz NOT NULL,
    lease_token      uuid,
    lease_until      timestamptz,
    worker_incarnation text,
    claimed_at       timestamptz,
    hint_seq         bigint NOT NULL DEFAULT 1,
    hint_at          timestamptz NOT NULL,
    user_id          text,
    agent_id         text,
    run_id           text,
    app_id           text,
    lane             bytea CHECK (octet_length(lane) = 32),
    lane_seq         bigint,
    head             boolean NOT NULL DEFAULT false,
    -- Claimable as far as order goes: a head, a task without a lane, or one past its canonical commit. Deliveries of
    -- webhooks are found by an index of their own, so that none of them is in the way of memory work.
    ready            boolean NOT NULL GENERATED ALWAYS AS
                     ((head OR lane_seq IS NULL OR stage <> 'accepted') AND kind <> 'webhook_delivery') STORED,
    priority         text NOT NULL CHECK (priority IN ('interactive', 'bulk')),
    command          bytea,
    -- A payload never outlives its key, whatever a process still believes of the day. This is data_key_of, written out here
    -- and in plans: the body of a function is read anew by each statement that writes the column.
    data_key         uuid GENERATED ALWAYS AS
                     (CASE WHEN octet_length(command) >= 48 AND substring(command FROM 1 FOR 4) = '\x00484601'::bytea
                           THEN encode(substring(command FROM 5 FOR 16), 'hex')::uuid END) STORED CONSTRAINT tasks_data_key REFERENCES data_keys,
    payload_format   smallint NOT NULL,
    policy           jsonb NOT NULL DEFAULT '{}',
    cursor           bigint NOT NULL DEFAULT 0,
    key_hash         bytea,
    -- The item revision that the task lands, for items only.
    item_key         bytea CHECK (octet_length(item_key) = 32),
    item_revision    integer,
    -- What work in chunks has done so far and did in the end: {"deleted": 3, "cancelled": 1}, {"done": 50, "total": 200}.
    counts           jsonb,
    outcome          text CHECK (outcome IN ('STORED', 'UNCHANGED', 'NO_MEMORY', 'PARTIAL')),
    error_class      text,
    error_code       text,
    erased           boolean NOT NULL DEFAULT false,
    -- Where in a trace its command came from: 16 bytes of trace, 8 of span, 1 of flags.
    trace            bytea CONSTRAINT tasks_trace CHECK (octet_length(trace) = 25),
    accepted_at      timestamptz NOT NULL,
    updated_at       timestamptz NOT NULL,
    started_at       timestamptz,
    committed_at     timestamptz,
    completed_at     timestamptz,
    CONSTRAINT tasks_lease CHECK ((status = 'running') = (lease_token IS NOT NULL)),
    CONSTRAINT tasks_lease_until CHECK ((lease_token IS NULL) = (lease_until IS NULL)),
    CONSTRAINT tasks_failed_uncommitted CHECK (NOT (status = 'failed' AND stage <> 'accepted')),
    CONSTRAINT tasks_succeeded_projected CHECK ((status = 'succeeded') = (stage = 'projected')),
    CONSTRAINT tasks_completed CHECK ((status IN ('succeeded', 'failed')) = (completed_at IS NOT NULL)),
    CONSTRAINT tasks_input CHECK (CASE WHEN status = 'succeeded' THEN command IS NULL
                                       WHEN status IN ('pending', 'running') AND stage = 'accepted' THEN command IS NOT NULL
                                       ELSE true END),
    CONSTRAINT tasks_outcome CHECK ((status = 'succeeded') = (outcome IS NOT NULL)),
    CONSTRAINT tasks_head CHECK (NOT head OR (lane_seq IS NOT NULL AND stage = 'accepted' AND status <> 'failed')),
    CONSTRAINT tasks_lane CHECK (lane_seq IS NULL OR lane IS NOT NULL)
) WITH (
    -- Heartbeats, and the two or three changes of a task's life, find room on the page of their row.
    fillfactor = 70,
    -- The scans for due tasks and for leases step over what is dead at the front of their indexes: little of it may gather,
    -- however many ended tasks lie in the table. What is open changes its share of the table quickly, and plans depend on it.
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500, autovacuum_analyze_scale_factor = 0.05);

-- Each change of status writes an entry into every index that the row is in: a task is in five while it is open and in
-- three when it has ended, besides those of its kind.

-- The due scan, fair over workspaces: a skip over workspace_id and the first rows of each.
CREATE INDEX tasks_due ON tasks (workspace_id, run_after, id) WHERE status = 'pending' AND ready;
-- The few of them that crashed twice: they run alone and are looked for apart. Crashes change with the status only.
CREATE INDEX tasks_crashed ON tasks (workspace_id, run_after, id) WHERE status = 'pending' AND ready AND crashes >= 2;
-- Due deliveries, webhook by webhook (the lane is the webhook's), and how many of each are under way.
CREATE INDEX tasks_deliveries ON tasks (lane, run_after, id) WHERE status = 'pending' AND kind = 'webhook_delivery';
CREATE INDEX tasks_delivering ON tasks (lane) WHERE status = 'running' AND kind = 'webhook_delivery';
-- The expiry scan pages by id. lease_until stays out of every index, so that heartbeats are HOT.
CREATE INDEX tasks_leased ON tasks (id) WHERE status = 'running';
CREATE UNIQUE INDEX tasks_head ON tasks (workspace_id, lane) WHERE head;
-- Who comes next in a lane. Names neither status nor lease.
CREATE INDEX tasks_waiting ON tasks (workspace_id, lane, lane_seq)
    WHERE lane_seq IS NOT NULL AND NOT head AND stage = 'accepted' AND completed_at IS NULL;
-- Listing events, newest first. Nothing is ordered by a UUIDv7 (I11): id only breaks ties.
CREATE INDEX tasks_listed ON tasks (workspace_id, kind, accepted_at DESC, id DESC);
-- Listing by status: what is open and what failed is rare among what succeeded. What is open and not committed is how much
-- a workspace has waiting, against its limit.
CREATE INDEX tasks_open ON tasks (workspace_id, stage, kind, accepted_at DESC, id DESC) WHERE completed_at IS NULL;
CREATE INDEX tasks_failed ON tasks (workspace_id, kind, accepted_at DESC, id DESC) WHERE status = 'failed';
-- How many revisions of an account's items wait. Names neither status nor lease.
CREATE INDEX tasks_items ON tasks (workspace_id, user_id)
    WHERE kind = 'memory_item' AND stage = 'accepted' AND completed_at IS NULL;
-- What a data key is still needed for.
CREATE INDEX tasks_sealed ON tasks (data_key) WHERE data_key IS NOT NULL;
-- Retention walks terminal tasks in the order they ended.
CREATE INDEX tasks_ended ON tasks (completed_at, id) WHERE completed_at IS NOT NULL;

-- Terminal tasks move here, so that the hot table stays small. Readers look in the hot table first.
CREATE TABLE tasks_archive (LIKE tasks INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING GENERATED);
ALTER TABLE tasks_archive ADD PRIMARY KEY (id);
-- Lets the planner leave the archive out of queries for open tasks.
ALTER TABLE tasks_archive ADD CONSTRAINT tasks_archive_ended CHECK (completed_at IS NOT NULL);
CREATE INDEX tasks_archive_listed ON tasks_archive (workspace_id, kind, accepted_at DESC, id DESC);
CREATE INDEX tasks_archive_failed ON tasks_archive (workspace_id, kind, accepted_at DESC, id DESC) WHERE status = 'failed';
CREATE INDEX tasks_archive_ended ON tasks_archive (completed_at, id);

-- Read with the rights of who asks, like every view that isn't made to show more.
CREATE VIEW all_tasks WITH (security_invoker = true) AS SELECT * FROM tasks UNION ALL SELECT * FROM tasks_archive;

CREATE TABLE credit_accounts (
    workspace_id uuid PRIMARY KEY,
    available    bigint NOT NULL DEFAULT 0 CONSTRAINT credit_accounts_available CHECK (available >= 0),
    held         bigint NOT NULL DEFAULT 0 CONSTRAINT credit_accounts_held CHECK (held >= 0)
) WITH (
    -- Two changes for each task of the workspace, all of them on one row: half a page is theirs until the dead are pruned.
    fillfactor = 50,
    -- Few rows, each of them changed without an end: their chains are shortened early.
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 200);

CREATE TABLE credit_grants (
    id           uuid PRIMARY KEY,
    workspace_id uuid NOT NULL,
    reference    text NOT NULL CHECK (reference <> ''),
    amount       bigint NOT NULL CHECK (amount > 0),
    granted_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    xid          xid8 NOT NULL DEFAULT pg_current_xact_id(),
    UNIQUE (workspace_id, reference)
);

-- One row for each authorised run. Nothing refers to tasks itself, so that terminal tasks can move away.
CREATE TABLE task_runs (
    task_id      uuid NOT NULL,
    generation   integer NOT NULL CHECK (generation >= 1),
    workspace_id uuid NOT NULL,
    amount       bigint NOT NULL CHECK (amount >= 0),
    outcome      text CHECK (outcome IN ('succeeded', 'failed')),
    closed       integer GENERATED ALWAYS AS (CASE WHEN outcome IS NOT NULL THEN generation END) STORED,
    opened_at    timestamptz NOT NULL,
    PRIMARY KEY (task_id, generation),
    -- What a closing refers to. It makes the outcome part of an index, so that ending a run is never a HOT update.
    CONSTRAINT task_runs_closed UNIQUE (task_id, generation, outcome, amount)
) WITH (
    -- A run changes once, when it ends: that version finds room on the page of the first one.
    fillfactor = 80);
-- A task, which is of one workspace, has one open run. What a workspace holds now, for its books.
CREATE UNIQUE INDEX task_runs_open ON task_runs (workspace_id, task_id) INCLUDE (amount) WHERE outcome IS NULL;
CREATE INDEX task_runs_workspace ON task_runs (workspace_id, opened_at, task_id);

-- One closing for each run, tied to the run's outcome and amount: a second settle, a settle after a release and
-- a settle before the outcome are impossible.
CREATE TABLE credit_closings (
    task_id      uuid NOT NULL,
    generation   integer NOT NULL,
    workspace_id uuid NOT NULL,
    outcome      text NOT NULL,
    amount       bigint NOT NULL,
    settled      bigint NOT NULL CHECK (settled >= 0),
    released     bigint NOT NULL CHECK (released >= 0),
    closed_at    timestamptz NOT NULL,
    xid          xid8 NOT NULL DEFAULT pg_current_xact_id(),
    PRIMARY KEY (task_id, generation),
    CONSTRAINT credit_closings_amounts CHECK (settled + released = amount),
    CONSTRAINT credit_closings_kind CHECK (CASE outcome WHEN 'succeeded' THEN released = 0 ELSE settled = 0 END),
    CONSTRAINT credit_closings_run FOREIGN KEY (task_id, generation, outcome, amount)
        REFERENCES task_runs (task_id, generation, outcome, amount)
);
CREATE INDEX credit_closings_workspace ON credit_closings (workspace_id, closed_at, task_id);
-- The books above their checkpoint, and the feed of ended runs, page by page in the order of places.
CREATE INDEX credit_closings_horizon ON credit_closings (workspace_id, xid, task_id, generation);
CREATE INDEX credit_grants_horizon ON credit_grants (workspace_id, xid);
-- An outcome has its closing at commit.
ALTER TABLE task_runs ADD CONSTRAINT task_runs_closing FOREIGN KEY (task_id, closed)
    REFERENCES credit_closings (task_id, generation) DEFERRABLE INITIALLY DEFERRED;

-- The journal is a view over what moves money, so that there is nothing to drift from.
CREATE VIEW credit_entries WITH (security_invoker = true) AS
    SELECT workspace_id, 'grant' AS type, amount, NULL::uuid AS task_id, 0 AS generation, reference, granted_at AS at, id
      FROM credit_grants
    UNION ALL
    SELECT workspace_id, 'hold', amount, task_id, generation, '', opened_at, task_id FROM task_runs
    UNION ALL
    SELECT workspace_id, CASE outcome WHEN 'succeeded' THEN 'settle' ELSE 'release' END, amount, task_id, generation, '',
           closed_at, task_id
      FROM credit_closings;

-- How far the books of a workspace have been added up. Sums cover every movement whose transaction is older than horizon.
CREATE TABLE credit_checkpoints (
    workspace_id uuid PRIMARY KEY,
    horizon      xid8 NOT NULL,
    granted      numeric NOT NULL,
    settled      numeric NOT NULL,
    checked_at   timestamptz NOT NULL
);

CREATE TABLE plans (
    task_id      uuid PRIMARY KEY,
    workspace_id uuid NOT NULL,
    generation   integer NOT NULL,
    body         bytea,
    data_key     uuid GENERATED ALWAYS AS
                 (CASE WHEN octet_length(body) >= 48 AND substring(body FROM 1 FOR 4) = '\x00484601'::bytea
                       THEN encode(substring(body FROM 5 FOR 16), 'hex')::uuid END) STORED CONSTRAINT plans_data_key REFERENCES data_keys,
    created_at   timestamptz NOT NULL
);
CREATE INDEX plans_sealed ON plans (data_key) WHERE data_key IS NOT NULL;

-- What the commit did, without any text.
CREATE TABLE task_results (
    task_id      uuid NOT NULL,
    ordinal      integer NOT NULL,
    workspace_id uuid NOT NULL,
    record_id    uuid NOT NULL,
    event        text NOT NULL CHECK (event IN ('ADD', 'UPDATE', 'DELETE', 'INVALIDATE', 'NONE')),
    -- Why one item of a batch did nothing (event NONE), as a public code.
    error_code   text,
    PRIMARY KEY (task_id, ordinal)
);

-- The body of an import as it was sent, or of an export as it is read, in parts. An import's parts go when it ends.
CREATE TABLE task_parts (
    task_id      uuid NOT NULL,
    part         integer NOT NULL,
    workspace_id uuid NOT NULL,
    body         bytea NOT NULL,
    data_key     uuid GENERATED ALWAYS AS (data_key_of(body)) STORED CONSTRAINT task_parts_data_key REFERENCES data_keys,
    PRIMARY KEY (task_id, part)
);
CREATE INDEX task_parts_sealed ON task_parts (data_key) WHERE data_key IS NOT NULL;

CREATE TABLE memories (
    id            uuid PRIMARY KEY,
    workspace_id  uuid NOT NULL,
    task_id       uuid NOT NULL,
    user_id       text,
    agent_id      text,
    run_id        text,
    app_id        text,
    lane          bytea NOT NULL CHECK (octet_length(lane) = 32),
    text          text NOT NULL,
    type          text,
    role          text,
    content_key   bytea NOT NULL CHECK (octet_length(content_key) = 32),
    metadata      json,
    metadata_b    jsonb GENERATED ALWAYS AS (metadata::jsonb) STORED,
    event_date    timestamptz,
    version       integer NOT NULL DEFAULT 1 CHECK (version >= 1),
    accepted_at   timestamptz NOT NULL,
    said_at       timestamptz NOT NULL,
    valid_from    timestamptz NOT NULL,
    valid_to      timestamptz,
    superseded_by uuid,
    expires_at    timestamptz,
    deleted_at    timestamptz,
    -- The caller's item that the record comes from.
    item_key      bytea CHECK (octet_length(item_key) = 32),
    item_id       text,
    -- What the record is filed under: names of the policy that it was read with.
    categories    text[] NOT NULL DEFAULT '{}',
    created_at    timestamptz NOT NULL,
    updated_at    timestamptz NOT NULL,
    -- Which record with which content: what a search asks of ten thousand at a time.
    ref           bytea NOT NULL GENERATED ALWAYS AS (uuid_send(id) || substring(content_key FROM 1 FOR 8)) STORED
);
-- Ended records too: forgetting an item erases them as well.
CREATE INDEX memories_item ON memories (workspace_id, item_key) WHERE item_key IS NOT NULL;
-- Repeats: a live record of the lane with the same content.
CREATE INDEX memories_content ON memories (workspace_id, lane, content_key) WHERE deleted_at IS NULL;
-- What a lane knows, newest first, for extraction.
CREATE INDEX memories_said ON memories (workspace_id, lane, said_at DESC, id DESC) WHERE deleted_at IS NULL AND valid_to IS NULL;
-- Lists of a scope, newest first; the common filter is the user. A search of all that a user has reads nothing else.
CREATE INDEX memories_user ON memories (workspace_id, user_id, created_at DESC, id DESC) INCLUDE (ref, valid_to, expires_at)
    WHERE deleted_at IS NULL;
CREATE INDEX memories_agent ON memories (workspace_id, agent_id, created_at DESC, id DESC)
    WHERE deleted_at IS NULL AND agent_id IS NOT NULL;
CREATE INDEX memories_run ON memories (workspace_id, run_id, created_at DESC, id DESC)
    WHERE deleted_at IS NULL AND run_id IS NOT NULL;
CREATE INDEX memories_app ON memories (workspace_id, app_id, created_at DESC, id DESC)
    WHERE deleted_at IS NULL AND app_id IS NOT NULL;
-- Tombstones, which an erase looks through.
CREATE INDEX memories_ended ON memories (workspace_id, id) WHERE deleted_at IS NOT NULL;

CREATE TABLE memory_history (
    id           uuid PRIMARY KEY,
    workspace_id uuid NOT NULL,
    memory_id    uuid NOT NULL,
    task_id      uuid NOT NULL,
    ordinal      integer NOT NULL,
    event        text NOT NULL CHECK (event IN ('ADD', 'UPDATE', 'DELETE', 'INVALIDATE')),
    version      integer NOT NULL,
    old_text     text,
    new_text     text,
    at           timestamptz NOT NULL
);
CREATE INDEX memory_history_memory ON memory_history (workspace_id, memory_id, version);
CREATE INDEX memory_history_task ON memory_history (task_id, ordinal);

-- Lexical projection: the distinct terms of a record and how often each occurs. It is current while the record has the
-- content it was made from; its version keeps an older one from being written over it.
CREATE TABLE memory_terms (
    memory_id    uuid PRIMARY KEY,
    workspace_id uuid NOT NULL,
    version      integer NOT NULL,
    content_key  bytea NOT NULL CHECK (octet_length(content_key) = 32),
    terms        text[] NOT NULL,
    counts       smallint[] NOT NULL,
    length       integer NOT NULL CHECK (length >= 0),
    CHECK (cardinality(terms) = cardinality(counts))
);

-- Semantic projection: little-endian float32. A text that the embedder refuses for good has no vector and says so.
CREATE TABLE memory_vectors (
    memory_id    uuid PRIMARY KEY,
    workspace_id uuid NOT NULL,
    version      integer NOT NULL,
    content_key  bytea NOT NULL CHECK (octet_length(content_key) = 32),
    model        text NOT NULL,
    vector       bytea,
    skipped      boolean NOT NULL DEFAULT false,
    made_at      timestamptz NOT NULL,
    CONSTRAINT memory_vectors_state CHECK (skipped = (vector IS NULL))
);
-- Numbers don't compress: trying to costs each write and each search.
ALTER TABLE memory_vectors ALTER COLUMN vector SET STORAGE EXTERNAL;
CREATE INDEX memory_vectors_skipped ON memory_vectors (workspace_id) WHERE skipped;

-- What a reader says of a live record; the last word counts. It goes with the record.
CREATE TABLE memory_feedback (
    memory_id    uuid PRIMARY KEY,
    workspace_id uuid NOT NULL,
    feedback     text NOT NULL CHECK (feedback IN ('POSITIVE', 'NEGATIVE', 'VERY_NEGATIVE')),
    reason       text,
    at           timestamptz NOT NULL
);

-- A question that is asked again by its id: which records meet a filter. It holds no record.
CREATE TABLE memory_exports (
    id           uuid PRIMARY KEY,
    workspace_id uuid NOT NULL,
    filter       json NOT NULL,
    filter_hash  bytea NOT NULL CHECK (octet_length(filter_hash) = 32),
    created_at   timestamptz NOT NULL
);
CREATE INDEX memory_exports_newest ON memory_exports (workspace_id, created_at DESC, id DESC);
CREATE INDEX memory_exports_old ON memory_exports (created_at);

-- Append-only, one row for each claim, written when it ends. No text. Leaves with its task.
CREATE TABLE task_attempts (
    task_id        uuid NOT NULL,
    claim          integer NOT NULL,
    workspace_id   uuid NOT NULL,
    generation     integer NOT NULL,
    worker         text NOT NULL,
    claimed_at     timestamptz NOT NULL,
    ended_at       timestamptz NOT NULL,
    ending         text NOT NULL CHECK (ending IN ('succeeded', 'retry', 'failed', 'given_back', 'crashed')),
    class          text,
    delay_ms       bigint NOT NULL DEFAULT 0,
    model_ms       bigint NOT NULL DEFAULT 0,
    provider_calls integer NOT NULL DEFAULT 0,
    tokens_in      bigint NOT NULL DEFAULT 0,
    tokens_out     bigint NOT NULL DEFAULT 0,
    xid            xid8 NOT NULL DEFAULT pg_current_xact_id(),
    PRIMARY KEY (task_id, claim)
);
-- The feed of retries. Claims that end their run, nearly all, are not in it.
CREATE INDEX task_attempts_retried ON task_attempts (workspace_id, xid, task_id, generation, claim)
    WHERE ending IN ('retry', 'crashed');

-- What a caller keeps under ids of its own. The key is the SHA-256 of account and item id; the time is fixed by the
-- first send; landed_revision is the revision whose records are committed.
CREATE TABLE items (
    workspace_id    uuid NOT NULL,
    item_key        bytea NOT NULL CHECK (octet_length(item_key) = 32),
    account         text NOT NULL,
    item_id         text NOT NULL,
    event_id        text NOT NULL,
    revision        integer NOT NULL CHECK (revision >= 1),
    landed_revision integer NOT NULL DEFAULT 0,
    content_hash    bytea NOT NULL CHECK (octet_length(content_hash) = 32),
    text            text NOT NULL,
    author          text NOT NULL DEFAULT '',
    session         text NOT NULL DEFAULT '',
    at              timestamptz NOT NULL,
    at_text         text NOT NULL DEFAULT '',
    task_id         uuid NOT NULL,
    created_at      timestamptz NOT NULL,
    updated_at      timestamptz NOT NULL,
    PRIMARY KEY (workspace_id, item_key)
) WITH (fillfactor = 80);
CREATE INDEX items_event ON items (workspace_id, event_id);
CREATE INDEX items_session ON items (workspace_id, account, session, at, item_key);
-- Pages over all of an account in order.
CREATE INDEX items_order ON items (workspace_id, account, at, created_at, item_key);

-- One rebuild of projections: how far it is, by record id.
CREATE TABLE reindexes (
    id          uuid PRIMARY KEY,
    model       text NOT NULL,
    after       uuid NOT NULL,
    done        bigint NOT NULL DEFAULT 0,
    total       bigint NOT NULL,
    started_at  timestamptz NOT NULL,
    finished_at timestamptz
);
CREATE UNIQUE INDEX reindexes_open ON reindexes (model) WHERE finished_at IS NULL;

-- Erase fences: scope values as hashes, so that the fence itself names nobody.
CREATE TABLE erasures (
    task_id      uuid PRIMARY KEY,
    workspace_id uuid NOT NULL,
    user_hash    bytea,
    agent_hash   bytea,
    run_hash     bytea,
    app_hash     bytea,
    erased_at    timestamptz NOT NULL
);
CREATE INDEX erasures_workspace ON erasures (workspace_id);

-- Receivers of a workspace's choice. The secret signs, so it is kept as it is; the one before it is valid until
-- old_secret_until. The feed_ columns are the place up to which the feed has been turned into deliveries.
CREATE TABLE webhooks (
    id               uuid PRIMARY KEY,
    workspace_id     uuid NOT NULL,
    name             text NOT NULL DEFAULT '',
    url              text NOT NULL,
    event_types      text[] NOT NULL CHECK (cardinality(event_types) > 0),
    -- Kinds of task that are told; empty is all.
    kinds            text[] NOT NULL DEFAULT '{}',
    -- 32 random bytes each, or sealed with the workspace's key that has no day. Null when its master key was given up.
    secret           bytea CHECK (octet_length(secret) IN (32, 80)),
    old_secret       bytea CHECK (octet_length(old_secret) IN (32, 80)),
    data_key         uuid GENERATED ALWAYS AS (coalesce(data_key_of(secret), data_key_of(old_secret))) STORED
                     CONSTRAINT webhooks_data_key REFERENCES data_keys,
    old_secret_until timestamptz,
    active           boolean NOT NULL DEFAULT true,
    disabled_reason  text CHECK (disabled_reason IN ('gone', 'failing', 'by_caller', 'secret_lost')),
    failing_since    timestamptz,
    feed_xid         xid8 NOT NULL,
    feed_task        uuid NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000',
    feed_generation  integer NOT NULL DEFAULT 0,
    feed_claim       integer NOT NULL DEFAULT 0,
    created_at       timestamptz NOT NULL,
    updated_at       timestamptz NOT NULL,
    -- Set until its deliveries are gone.
    deleted_at       timestamptz,
    CONSTRAINT webhooks_disabled CHECK (active = (disabled_reason IS NULL)),
    CONSTRAINT webhooks_signs CHECK (secret IS NOT NULL OR NOT active),
    CONSTRAINT webhooks_old_secret CHECK ((old_secret IS NULL) = (old_secret_until IS NULL))
);
CREATE INDEX webhooks_workspace ON webhooks (workspace_id, created_at, id) WHERE deleted_at IS NULL;
CREATE INDEX webhooks_active ON webhooks (id) WHERE active AND deleted_at IS NULL;
CREATE INDEX webhooks_deleted ON webhooks (id) WHERE deleted_at IS NOT NULL;
CREATE INDEX webhooks_sealed ON webhooks (data_key) WHERE data_key IS NOT NULL;

-- One message to one webhook: the body as it is signed, and the latest task that delivers it. It holds ids, kinds and
-- codes, no text and no scope. Leaves with its task.
CREATE TABLE webhook_deliveries (
    id           uuid PRIMARY KEY,
    workspace_id uuid NOT NULL,
    webhook_id   uuid NOT NULL,
    task_id      uuid NOT NULL UNIQUE,
    type         text NOT NULL,
    about        uuid,
    generation   integer NOT NULL DEFAULT 0,
    body         bytea NOT NULL,
    created_at   timestamptz NOT NULL,
    last_at      timestamptz,
    last_status  integer,
    last_error   text
) WITH (fillfactor = 80);
CREATE INDEX webhook_deliveries_listed ON webhook_deliveries (workspace_id, webhook_id, created_at DESC, id DESC);

-- A provider that is left alone until a time, for all workers, and its failures in a row. An operator stops one without
-- an end, beside what the workers find.
CREATE TABLE provider_pauses (
    provider     text PRIMARY KEY,
    paused_until timestamptz NOT NULL,
    class        text NOT NULL,
    in_a_row     integer NOT NULL DEFAULT 0,
    updated_at   timestamptz NOT NULL,
    stopped_at   timestamptz,
    reason       text NOT NULL DEFAULT ''
);

-- Who may use the admin API. A token is kept like an API key.
CREATE TABLE operators (
    id          text PRIMARY KEY CHECK (length(id) = 12),
    name        text NOT NULL CHECK (name <> ''),
    secret_hash bytea NOT NULL CHECK (octet_length(secret_hash) = 32),
    created_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    revoked_at  timestamptz
);

-- Who did what to a workspace, its keys, its credits and its events, in the transaction that did it. It holds ids, names
-- of workspaces and operators, numbers and codes; no text of a caller and no secret.
CREATE TABLE operator_acts (
    id           uuid PRIMARY KEY,
    at           timestamptz NOT NULL,
    actor        text NOT NULL CHECK (actor <> ''),
    origin       text NOT NULL,
    request_id   text NOT NULL,
    workspace_id uuid,
    act          text NOT NULL CHECK (act <> ''),
    subject      text NOT NULL,
    details      jsonb NOT NULL DEFAULT '{}'
);
CREATE INDEX operator_acts_listed ON operator_acts (at DESC, id DESC);
CREATE INDEX operator_acts_workspace ON operator_acts (workspace_id, at DESC, id DESC);
-- What was done to one thing: the audit asks it of each.
CREATE INDEX operator_acts_subject ON operator_acts (workspace_id, subject);

-- What is recorded stays as it is, and for 30 days at least. Retention removes what is older.
-- +goose StatementBegin
CREATE FUNCTION keep_operator_acts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' AND OLD.at < clock_timestamp() - interval '30 days' THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION 'operator_acts is append-only' USING ERRCODE = 'restrict_violation';
END $$;
-- +goose StatementEnd
CREATE TRIGGER operator_acts_kept BEFORE UPDATE OR DELETE ON operator_acts FOR EACH ROW EXECUTE FUNCTION keep_operator_acts();

-- Who is signed in at the console: the SHA-256 of what the browser holds, and whose key or token it stands for. Whether
-- that one still holds is asked at each request.
CREATE TABLE console_sessions (
    id         bytea PRIMARY KEY CHECK (octet_length(id) = 32),
    kind       text NOT NULL CHECK (kind IN ('key', 'operator')),
    holder     text NOT NULL CHECK (length(holder) = 12),
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL
);
CREATE INDEX console_sessions_holder ON console_sessions (kind, holder, created_at DESC);
CREATE INDEX console_sessions_expired ON console_sessions (expires_at);

-- What a process did in about a minute, and how the whole service stood. No row is about a workspace. Times are counted
-- in classes of a fixed scale, so that those of several processes add up.
CREATE TABLE process_minutes (
    at              timestamptz NOT NULL,
    process         text NOT NULL CHECK (process <> ''),
    span_ms         bigint NOT NULL CHECK (span_ms > 0),
    accepted        bigint NOT NULL,
    replayed        bigint NOT NULL,
    refused         bigint NOT NULL,
    accept_times    bigint[] NOT NULL,
    succeeded       bigint NOT NULL,
    retried         bigint NOT NULL,
    failed          bigint NOT NULL,
    given_back      bigint NOT NULL,
    hints_published bigint NOT NULL,
    hints_failed    bigint NOT NULL,
    hints_repaired  bigint NOT NULL,
    model_calls     bigint NOT NULL,
    model_times     bigint[] NOT NULL,
    model_errors    jsonb NOT NULL,
    busy            integer NOT NULL,
    PRIMARY KEY (at, process)
);
CREATE TABLE service_minutes (
    minute      timestamptz PRIMARY KEY,
    waiting     integer NOT NULL,
    running     integer NOT NULL,
    retrying    integer NOT NULL,
    due         integer NOT NULL,
    expired     integer NOT NULL,
    oldest_ms   bigint NOT NULL,
    succeeded   integer NOT NULL,
    failed      integer NOT NULL,
    done_p50_ms bigint NOT NULL,
    done_p99_ms bigint NOT NULL
);

-- What the health of the service is told by: states and times over all workspaces, for roles that may read no task and no
-- record of theirs. A view without security_invoker reads as its owner.
CREATE VIEW task_states AS
    SELECT id, workspace_id, kind, status, stage, ready, starts, run_after, lease_until, accepted_at, completed_at, error_class FROM tasks;
CREATE VIEW skipped_vectors AS SELECT workspace_id FROM memory_vectors WHERE skipped;

-- The group roles of the processes. Roles belong to the server, so another database may make them at the same moment.
-- +goose StatementBegin
DO $$
DECLARE
    missing text;
BEGIN
    FOREACH missing IN ARRAY ARRAY['holdfast_api', 'holdfast_worker'] LOOP
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = missing) THEN
            BEGIN
                EXECUTE format('CREATE ROLE %I NOLOGIN', missing);
            EXCEPTION
                WHEN duplicate_object OR unique_violation THEN NULL;
                WHEN insufficient_privilege THEN
                    RAISE EXCEPTION 'the role % is missing and this role may not create it', missing
                        USING ERRCODE = 'HF001', HINT = 'Run deploy/postgres/roles.sql as a superuser first.';
            END;
        END IF;
    END LOOP;
    EXECUTE format('REVOKE CREATE ON SCHEMA %I FROM PUBLIC', current_schema());
    EXECUTE format('GRANT USAGE ON SCHEMA %I TO holdfast_api, holdfast_worker', current_schema());
    IF to_regclass('goose_db_version') IS NOT NULL THEN -- a process refuses to start over an older schema
        GRANT SELECT ON goose_db_version TO holdfast_api, holdfast_worker;
    END IF;
END $$;
-- +goose StatementEnd
REVOKE ALL ON FUNCTION keep_operator_acts() FROM PUBLIC;

-- The API: what its callers may do, and erases that it runs while their caller waits.
GRANT SELECT ON all_tasks, credit_entries, task_states, skipped_vectors TO holdfast_api;
GRANT SELECT, INSERT, UPDATE ON provider_pauses TO holdfast_api;
GRANT SELECT (id, name, secret_hash, revoked_at) ON operators TO holdfast_api;
GRANT SELECT, INSERT ON idempotency_keys, data_keys, credit_grants, credit_closings, task_results, task_attempts, operator_acts
    TO holdfast_api;
GRANT SELECT, INSERT, UPDATE ON workspaces, api_keys, lanes, tasks, credit_accounts, task_runs, plans, webhooks,
    webhook_deliveries TO holdfast_api;
GRANT SELECT, UPDATE ON tasks_archive TO holdfast_api;
GRANT SELECT, INSERT, DELETE ON task_parts, memory_exports, erasures, console_sessions TO holdfast_api;
GRANT SELECT, INSERT ON process_minutes, service_minutes TO holdfast_api;
GRANT SELECT, INSERT, UPDATE ON memory_history TO holdfast_api;
GRANT SELECT, INSERT, UPDATE, DELETE ON memories, memory_terms, memory_vectors, memory_feedback, items TO holdfast_api;

-- Workers and repair: the tasks of all workspaces, what comes of them, and what has had its time. No secret of a caller
-- or of an operator.
GRANT SELECT ON all_tasks, credit_entries, task_states, skipped_vectors, credit_grants TO holdfast_worker;
GRANT SELECT, UPDATE ON workspaces, credit_accounts TO holdfast_worker;
GRANT SELECT (id, workspace_id), DELETE ON api_keys TO holdfast_worker;
GRANT SELECT, INSERT ON credit_closings TO holdfast_worker;
GRANT SELECT (id, at), INSERT, DELETE ON operator_acts TO holdfast_worker;
GRANT SELECT (id, expires_at), DELETE ON console_sessions TO holdfast_worker;
GRANT SELECT, INSERT, DELETE ON process_minutes, service_minutes TO holdfast_worker;
GRANT SELECT, INSERT, DELETE ON idempotency_keys, task_results, task_parts, task_attempts, erasures TO holdfast_worker;
GRANT SELECT, UPDATE, DELETE ON webhooks, memory_exports TO holdfast_worker;
GRANT SELECT, INSERT, UPDATE ON lanes, task_runs, credit_checkpoints, provider_pauses, reindexes TO holdfast_worker;
GRANT SELECT, INSERT, UPDATE, DELETE ON tasks, tasks_archive, plans, memories, memory_history, memory_terms, memory_vectors,
    memory_feedback, items, webhook_deliveries, data_keys TO holdfast_worker;

-- The second belt: whatever a statement says, the API sees and writes rows of the workspace that its transaction is
-- about. The setting is read once, not row by row. Behind coalesce the comparison is a filter and no condition of an
-- index: every query names its workspace, and the planner would take the same condition twice for a rarer one. Workers are
-- for all workspaces. The owner is not held, so that one role can do everything where nobody has set up more.
-- +goose StatementBegin
DO $$
DECLARE
    held record;
BEGIN
    FOR held IN SELECT c.relname AS name, a.attname AS key
                  FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
                 WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r' AND NOT a.attisdropped
                   AND (a.attname = 'workspace_id' OR c.relname = 'workspaces' AND a.attname = 'id') LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', held.name);
        EXECUTE format('CREATE POLICY workspace ON %I TO holdfast_api '
                       'USING (coalesce(%I = ANY ((SELECT string_to_array(current_setting(''holdfast.workspace'', true), '',''))::uuid[]), false))',
                       held.name, held.key);
        EXECUTE format('CREATE POLICY workers ON %I TO holdfast_worker USING (true)', held.name);
    END LOOP;
END $$;
-- +goose StatementEnd

-- What the API has to see of every workspace: who calls, and what operators list. The transaction says that it does.
CREATE POLICY everyone ON workspaces FOR SELECT TO holdfast_api USING ((SELECT current_setting('holdfast.reach', true)) = 'everyone');
CREATE POLICY everyone ON api_keys FOR SELECT TO holdfast_api USING ((SELECT current_setting('holdfast.reach', true)) = 'everyone');
CREATE POLICY everyone ON credit_accounts FOR SELECT TO holdfast_api USING ((SELECT current_setting('holdfast.reach', true)) = 'everyone');
CREATE POLICY everyone ON data_keys FOR SELECT TO holdfast_api USING ((SELECT current_setting('holdfast.reach', true)) = 'everyone');
CREATE POLICY everyone ON operator_acts FOR SELECT TO holdfast_api USING ((SELECT current_setting('holdfast.reach', true)) = 'everyone');
-- An operator's acts on providers are about no workspace.
CREATE POLICY providers ON operator_acts FOR INSERT TO holdfast_api
    WITH CHECK (workspace_id IS NULL AND act IN ('provider.pause', 'provider.resume'));

-- +goose Down

-- The roles stay: they belong to the server, and other databases may use them.
-- +goose StatementBegin
DO $$
BEGIN
    EXECUTE format('REVOKE ALL ON SCHEMA %I FROM holdfast_api, holdfast_worker', current_schema());
    IF to_regclass('goose_db_version') IS NOT NULL THEN
        REVOKE ALL ON goose_db_version FROM holdfast_api, holdfast_worker;
    END IF;
END $$;
-- +goose StatementEnd
DROP VIEW task_states, skipped_vectors;
DROP TABLE service_minutes, process_minutes, console_sessions, operator_acts, operators;
DROP FUNCTION keep_operator_acts();
DROP TABLE webhook_deliveries, webhooks, provider_pauses, erasures, items, reindexes, task_parts, task_attempts, memory_exports, memory_feedback, memory_vectors, memory_terms, memory_history, memories,
    task_results, plans, credit_checkpoints CASCADE;
DROP VIEW credit_entries;
ALTER TABLE task_runs DROP CONSTRAINT task_runs_closing;
DROP TABLE credit_closings, task_runs, credit_grants, credit_accounts;
DROP VIEW all_tasks;
DROP TABLE tasks_archive, tasks, lanes, idempotency_keys, data_keys, api_keys, workspaces;
DROP FUNCTION data_key_of(bytea);

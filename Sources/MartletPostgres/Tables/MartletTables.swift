import MartletModel
import PostgresKit

/// Martlet's own tables in a PostgreSQL database. They have a separate schema, so the user's tables
/// stay unchanged.
enum MartletTables {
    /// The schema's name. It is not `martlet`, because a role of that name would find it on its
    /// search path.
    static let schema = "_martlet"

    /// The key column that adoption adds to a table without a key of one column.
    static let surrogate = ReservedWords.surrogateKey

    /// The format of these tables. It is raised with every change that an older server could not
    /// work with.
    static let format: Int64 = 6

    /// The script that makes all tables. It runs in a transaction.
    static let script = """
        CREATE SCHEMA _martlet;
        CREATE TABLE _martlet.dataset (
            number integer PRIMARY KEY CHECK (number = 1), format bigint NOT NULL,
            name text NOT NULL, identity text NOT NULL, revision bigint NOT NULL,
            floor bigint NOT NULL, hash bytea NOT NULL, tables bigint NOT NULL DEFAULT 1,
            cache_key uuid NOT NULL DEFAULT gen_random_uuid());
        CREATE TABLE _martlet.types (
            number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL UNIQUE,
            relation regclass NOT NULL UNIQUE, truncation text NOT NULL DEFAULT 'refuse');
        CREATE TABLE _martlet.columns (
            type bigint, name text, PRIMARY KEY (type, name));
        CREATE TABLE _martlet.devices (
            number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            client_id text NOT NULL UNIQUE, principal text NOT NULL,
            acknowledged bigint NOT NULL, since bigint NOT NULL);
        CREATE TABLE _martlet.ids (
            device bigint, type bigint, temporary bigint, id bigint NOT NULL,
            PRIMARY KEY (device, type, temporary));
        CREATE TABLE _martlet.records (
            type bigint, id text COLLATE "C", revision bigint NOT NULL, author bigint NOT NULL,
            others bigint NOT NULL, deleted boolean NOT NULL, PRIMARY KEY (type, id))
            WITH (fillfactor = 80);
        CREATE INDEX records_revision ON _martlet.records (revision);
        CREATE TABLE _martlet.announced (
            revision bigint, type bigint, id text COLLATE "C", PRIMARY KEY (revision, type, id));
        CREATE TABLE _martlet.log (
            revision bigint PRIMARY KEY, device bigint NOT NULL, identifier text, sequence bigint,
            content bytea, hash bytea NOT NULL, time bigint NOT NULL, temporaries text,
            author text, body bytea NOT NULL);
        ALTER TABLE _martlet.log ALTER body SET STORAGE EXTERNAL;
        CREATE UNIQUE INDEX log_identifier ON _martlet.log (identifier)
            WHERE identifier IS NOT NULL;
        CREATE UNIQUE INDEX log_sequence ON _martlet.log (device, sequence)
            WHERE sequence IS NOT NULL AND device <> 0;
        CREATE TABLE _martlet.refusals (
            number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, device bigint NOT NULL,
            sequence bigint, identifier text, content bytea NOT NULL, reason text NOT NULL,
            message text NOT NULL, time bigint NOT NULL);
        CREATE UNIQUE INDEX refusals_identifier ON _martlet.refusals (identifier)
            WHERE identifier IS NOT NULL;
        CREATE UNIQUE INDEX refusals_sequence ON _martlet.refusals (device, sequence)
            WHERE sequence IS NOT NULL;
        CREATE TABLE _martlet.tokens (
            hash bytea PRIMARY KEY, identifier text NOT NULL UNIQUE, person text,
            roles text NOT NULL, device text, created bigint NOT NULL, revoked bigint);
        CREATE TABLE _martlet.token_version (
            number integer PRIMARY KEY CHECK (number = 1), version bigint NOT NULL);
        INSERT INTO _martlet.token_version VALUES (1, 0);
        CREATE TABLE _martlet.foreign_transactions (
            transaction xid8 PRIMARY KEY, author text, parted boolean NOT NULL DEFAULT false)
            WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
        CREATE TABLE _martlet.foreign_changes (
            number bigint GENERATED ALWAYS AS IDENTITY,
            transaction xid8 NOT NULL DEFAULT pg_current_xact_id(), type bigint NOT NULL,
            id text COLLATE "C" NOT NULL)
            WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
        CREATE INDEX foreign_changes_transaction
            ON _martlet.foreign_changes (transaction, number);
        CREATE INDEX foreign_changes_record ON _martlet.foreign_changes (type, id);
        \(capture)
        \(notes)
        \(published)
        \(views)
        \(purges)
        """

    /// The table that has a row if external writes are read from the write-ahead log; see
    /// `LogicalState`.
    static let capture = """
        CREATE TABLE IF NOT EXISTS _martlet.capture (
            number integer PRIMARY KEY CHECK (number = 1), slot text NOT NULL,
            publication text NOT NULL, position pg_lsn, horizon xid8 NOT NULL,
            entered bigint NOT NULL DEFAULT 0) WITH (fillfactor = 10);
        """

    /// The columns for the database that the tables are in, and for the columns that devices were
    /// told last; see `MartletTables.clearNotes` and `ColumnChanges`.
    static let notes = """
        ALTER TABLE _martlet.dataset ADD COLUMN IF NOT EXISTS home text,
            ADD COLUMN IF NOT EXISTS settled xid8;
        ALTER TABLE _martlet.types ADD COLUMN IF NOT EXISTS file bigint;
        ALTER TABLE _martlet.columns ADD COLUMN IF NOT EXISTS place bigint,
            ADD COLUMN IF NOT EXISTS form text, ADD COLUMN IF NOT EXISTS version text;
        CREATE INDEX IF NOT EXISTS foreign_transactions_parted
            ON _martlet.foreign_transactions (transaction) WHERE parted;
        """

    /// The column for the line of the publication by which each table is read; see
    /// `LogicalPublication.Line`.
    static let published = """
        ALTER TABLE _martlet.types ADD COLUMN IF NOT EXISTS published text;
        UPDATE _martlet.types AS t SET published = \(LogicalPublication.member);
        """

    /// The tables for what policies show to whom; see `ViewStorage`. `shown` is false for a record
    /// that a type view once showed; `moved` is the revision since which that is so, and
    /// `first` the one at which it was shown first.
    static let views = """
        CREATE TABLE _martlet.type_views (
            number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, type bigint NOT NULL,
            key bytea NOT NULL UNIQUE, revision bigint);
        CREATE TABLE _martlet.members (
            view bigint, id text COLLATE "C", first bigint NOT NULL, moved bigint NOT NULL,
            shown boolean NOT NULL, PRIMARY KEY (view, id));
        CREATE INDEX members_moved ON _martlet.members (view, moved);
        CREATE TABLE _martlet.views (
            number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, parts text NOT NULL UNIQUE);
        CREATE TABLE _martlet.given (
            principal text, view bigint, first bigint NOT NULL, last bigint NOT NULL,
            PRIMARY KEY (principal, view));
        """

    /// The table for what each device has confirmed last; see `PurgeReceipt`.
    static let purges = """
        CREATE TABLE _martlet.purges (
            device bigint PRIMARY KEY, view bigint NOT NULL, revision bigint NOT NULL,
            records bigint NOT NULL, hash text NOT NULL, time bigint NOT NULL);
        """
}

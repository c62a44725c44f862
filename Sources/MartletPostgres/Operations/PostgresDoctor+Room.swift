package import PostgresKit

/// The space that a database takes. SQL does not tell how much is left; see `localDirectory`.
extension PostgresDoctor {
    /// The bytes from which Martlet's log is worth a finding if it is most of the database.
    private static let largeLog: Int64 = 1 << 30

    /// Returns the database's bytes on disk; nil if the role may not know them.
    /// - Throws: `PostgresError` if the query fails.
    package func databaseBytes() throws(PostgresError) -> Int64? {
        let rows = try connection.query(
            """
            SELECT pg_catalog.pg_database_size(current_database()) WHERE \
            pg_catalog.has_database_privilege(current_database(), 'CONNECT')
            """)
        return rows.count == 1 ? try rows.integer(0, 0) : nil
    }

    /// Returns the folder of the server's files, if it is on this machine and the role may know it;
    /// else nil.
    /// - Throws: `PostgresError` if the query fails.
    package func localDirectory() throws(PostgresError) -> String? {
        let rows = try connection.query(
            """
            SELECT setting FROM pg_catalog.pg_settings WHERE name = 'data_directory' \
            AND coalesce(inet_server_addr() << '127.0.0.0/8' OR inet_server_addr() = '::1', true)
            """)
        return rows.count == 1 ? try rows.text(0, 0) : nil
    }

    func room() throws(PostgresError) -> [Finding] {
        try archive() + writeAheadLog() + ownLog()
    }

    private func archive() throws(PostgresError) -> [Finding] {
        let rows = try connection.query(
            """
            SELECT failed_count, coalesce(last_failed_wal, '') FROM pg_catalog.pg_stat_archiver \
            WHERE last_failed_time > coalesce(last_archived_time, '-infinity')
            """)
        guard rows.count == 1 else { return [] }
        return [
            error(
                "space",
                """
                Archiving the write-ahead log fails: \(try rows.integer(0, 0)) times, last for \
                \(try rows.text(0, 1)).
                """,
                "What is not archived is kept until the disk is full, and then nothing can be written.",
                "See the server's log for what archive_command says, and correct it.")
        ]
    }

    /// Returns a finding if the write-ahead log is much larger than intended.
    private func writeAheadLog() throws(PostgresError) -> [Finding] {
        let may = try connection.query(
            "SELECT pg_catalog.has_function_privilege('pg_catalog.pg_ls_waldir()', 'EXECUTE')")
        guard try may.boolean(0, 0) else { return [] }
        let rows = try connection.query(
            """
            SELECT sum(size)::bigint, \
            pg_catalog.pg_size_bytes(current_setting('max_wal_size')) FROM pg_catalog.pg_ls_waldir()
            """)
        guard !rows.isNull(0, 0) else { return [] }
        let (bytes, meant) = (try rows.integer(0, 0), try rows.integer(0, 1))
        guard bytes > 2 * meant + (1 << 30) else { return [] }
        return [
            warning(
                "space",
                "The write-ahead log takes \(bytes >> 20) MiB; \(meant >> 20) MiB are meant.",
                "Something keeps it: a replication slot, wal_keep_size, or an archive that fails.",
                "See pg_replication_slots and pg_stat_archiver.")
        ]
    }

    private func ownLog() throws(PostgresError) -> [Finding] {
        let rows = try connection.query("SELECT pg_catalog.pg_total_relation_size('_martlet.log')")
        let log = try rows.integer(0, 0)
        guard let all = try databaseBytes(), log > Self.largeLog, log > all / 2 else { return [] }
        return [
            warning(
                "space",
                "Martlet's log takes \(log >> 20) MiB of the database's \(all >> 20) MiB.",
                "It is kept for devices that are behind; backups take it along.",
                "Serve with a smaller --keep-revisions, or martlet compact --postgres; then VACUUM."
            )
        ]
    }
}

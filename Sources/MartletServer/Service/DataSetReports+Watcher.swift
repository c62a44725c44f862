internal import MartletModel

/// The reports of the watcher.
extension DataSetReports {
    /// Reports that looks begin to fail (with the reason), or work again (nil).
    func reportLooks(failing reason: String?) {
        if reason != nil { metrics.countStorageFault("look") }
        log(
            reason == nil ? .info : .error, "storage",
            [("reason", .text(reason ?? "the storage answers again"))])
    }

    func reportLogWentBack(from before: Revision, to now: Revision) {
        log(
            .warning, "storage",
            [
                ("reason", .text(Self.wentBack)), ("before", .number(Int(before))),
                ("now", .number(Int(now))),
            ])
    }

    private static let wentBack = """
        The log went back: the database was restored, or a standby that lagged took over. Devices send \
        their own changes again; external writes in between are lost.
        """

    /// Reports that tables are locked, or no longer.
    func report(_ news: LockedTables.News) {
        switch news {
        case .locked(let types):
            log(
                .warning, "locked",
                [
                    ("types", .text(types.joined(separator: ", "))),
                    ("reason", .text("Another program has locked tables, also against reading.")),
                    ("remedy", .text("Have its transaction end; pg_locks shows whose it is.")),
                ])
        case .free:
            log(.info, "locked", [("reason", .text("The tables are no longer locked."))])
        }
    }

    /// Reports that another server of the data set has other policies, or no longer.
    func report(otherPolicies isOther: Bool) {
        guard isOther else {
            return log(.info, "rules", [("reason", .text("All servers have the same policies."))])
        }
        log(
            .warning, "rules",
            [
                (
                    "reason",
                    .text(
                        """
                        Another server of this database has other policies, or none: people see what the \
                        server shows that they ask.
                        """)
                ), ("remedy", .text("Start all servers with the same rules file.")),
            ])
    }

    /// Reports that the writer waits long for its commit.
    func report(commitWait wait: Duration) {
        log(
            .error, "storage",
            [
                ("reason", .text(WriterHealth.words(forWait: wait))),
                ("remedy", .text(Self.waitRemedy)),
            ])
    }

    private static let waitRemedy = """
        See that the disk is not overloaded and, in PostgreSQL, that the standbys in \
        synchronous_standby_names answer; martlet doctor says more. Until then nothing is accepted.
        """

    /// Reports a sentence about the reading of external writes, or why it failed.
    func reportReading(_ words: String, isFailure: Bool) {
        log(isFailure ? .error : .info, "changes", [("note", .text(words))])
    }
}

internal import MartletModel
internal import MartletServerCore

/// Reports on one data set: to operators, in the log and the metrics, and to the directory, if the
/// tables have changed.
struct DataSetReports: Sendable {
    let dataSet: String
    let metrics: Metrics
    /// The log of the whole server.
    let serverLog: ServerLog
    /// Called, perhaps more than once, when the tables differ from those that were opened.
    let changed: @Sendable () -> Void

    /// Logs a line that names the data set.
    func log(_ level: ServerLog.Level, _ event: String, _ fields: [(String, ServerLog.Field)]) {
        serverLog.log(level, event, [("dataSet", .text(dataSet))] + fields)
    }

    /// Reports a fault of the storage to the operator. If the tables have changed, it has the data
    /// set reopened.
    func report(_ fault: StorageFault) {
        metrics.countStorageFault(fault.kind.rawValue)
        log(.error, "storage", [("reason", .text(fault.description))])
        if fault.kind == .changed { changed() }
    }

    /// Reports that nothing limits any more what people get who have views.
    func reportWithoutPolicies() {
        log(
            .warning, "rules",
            [
                (
                    "reason",
                    .text(
                        """
                        The data set was served with policies before, and this server has none: people \
                        who saw a part are sent everything.
                        """)
                ),
                (
                    "remedy",
                    .text(
                        """
                        If this is a mistake, stop the server, and start it with --rules and the file \
                        that has the policies.
                        """)
                ),
            ])
    }

    /// Counts a row that is left out, and logs it the first time.
    func reportLeftOut(_ row: UnsendableRows.Row, isNew: Bool) {
        metrics.countRowLeftOut()
        guard isNew else { return }
        log(
            .warning, "unsendable",
            [
                ("type", .text(row.type)), ("record", .text(row.id.description)),
                ("reason", .text(row.reason)),
                (
                    "remedy",
                    .text(
                        """
                        Correct the row. Devices that see everything keep what they have of it; devices \
                        that see a part by policies remove it.
                        """)
                ),
            ])
    }
}

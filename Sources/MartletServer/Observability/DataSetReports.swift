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

    /// Counts a row that is left out, and logs it the first time.
    func reportLeftOut(_ row: UnsendableRows.Row, isNew: Bool) {
        metrics.countRowLeftOut()
        guard isNew else { return }
        log(
            .warning, "unsendable",
            [
                ("type", .text(row.type)), ("record", .text(row.id.description)),
                ("reason", .text(row.reason)),
                ("remedy", .text("Correct the row; devices keep what they have of it.")),
            ])
    }
}

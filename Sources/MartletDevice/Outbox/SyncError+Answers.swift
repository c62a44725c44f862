internal import MartletModel
package import MartletProtocol
package import SQLiteRecords

extension SyncError {
    /// Creates an error for a body that is no answer: half of one, or a page of a proxy or portal.
    package init(unreadable body: [UInt8], _ fault: any Error) {
        guard AnswerFormat.isWhole(body) else {
            self.init(.offline, Problem.unrecognized(status: 200).detail)
            return
        }
        self.init(.violation, "The answer cannot be read: \(fault)")
    }

    /// Creates an error for a snapshot that cannot be used.
    package init(_ error: SnapshotError) {
        self.init(
            error.kind == .newer
                ? .versionUnsupported : error.kind == .other ? .wrongDataSet : .violation,
            error.message)
    }
}

extension SyncError.Kind {
    /// Creates the kind of an answer that refuses. Only a refusal by the server itself stops a
    /// client.
    package init(_ problem: Problem, status: Int) {
        self =
            switch (status, problem.kind) {
            case _ where !problem.isOfServer: .offline
            case (401, _): .unauthorized
            case (_, "versionUnsupported"): .versionUnsupported
            case (_, "clientBound"): .wrongUser
            case (_, "tooManyDevices"): .tooManyDevices
            case (403, _), (409, _): .wrongDataSet
            case (408, _), (429, _), (500..., _): .busy
            default: .rejected
            }
    }
}

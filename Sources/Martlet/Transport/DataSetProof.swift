internal import MartletDevice
internal import MartletModel
internal import MartletProtocol

/// Checks whether the data that a new device has fetched belongs to the data set that its edits
/// will go to.
///
/// The device fetches tables and snapshots with GET. A cache may answer with another data set's,
/// and a proxy may lead the device to another server. So the device keeps them only after
/// `POST /sync` has named the same data set, in an answer that repeats the name of the request.
struct DataSetProof: Sendable {
    let transport: any Transport
    let randomBits: @Sendable () -> UInt64

    /// Asks the server whether it knows a data set at a revision.
    /// - Returns: False if the server does not know that the user was given the records of the lineage's view, so
    ///   that the device must not keep them.
    /// - Throws: `SyncError`: `.wrongDataSet` if the data set is another one; otherwise the reason why
    ///   the server did not answer.
    @discardableResult
    func demand(
        _ dataSet: String, at revision: Revision, lineage: String?
    ) async throws(SyncError) -> Bool {
        let name = String(randomBits(), radix: 16)
        var request = SyncRequest(maxRevision: revision)
        request.protocolVersion = WireVersion.current
        request.dataSet = dataSet
        request.lineage = lineage
        request.request = name
        // The device does not use the changes of this answer, so it asks for as few as possible.
        request.answerBytes = 1
        let answer: TransportAnswer
        do {
            answer = try await transport.exchange(
                try SyncCoder.requestHead(request) + SyncCoder.tail)
        } catch let failure as TransportFailure {
            throw SyncError(failure)
        } catch {
            throw SyncError(.violation, "The request cannot be written: \(error)")
        }
        guard answer.status == 200 else { return try Self.judge(answer) }
        guard let read = try? SyncCoder.decodeAnswer(answer.body), read.request ?? name == name
        else {
            throw SyncError(.offline, Problem.unrecognized(status: answer.status).detail)
        }
        guard read.dataSet ?? dataSet == dataSet else { throw Self.isOther }
        return true
    }

    private static func judge(_ answer: TransportAnswer) throws(SyncError) -> Bool {
        let problem = SyncCoder.decodeProblem(answer.body, status: answer.status)
        switch problem.kind {
        case "wrongDataSet": throw isOther
        // The data set is right, but its history differs; the first exchange deals with that.
        case "lineage", "revisionAhead": return true
        case "view": return false
        default: throw SyncError(SyncError.Kind(problem, status: answer.status), problem.detail)
        }
    }

    static let isOther = SyncError(
        .wrongDataSet,
        "What was fetched to begin with is of another data set than the one that the server keeps for"
            + " this token, or than the app expects. Something between may mix answers up. Nothing was"
            + " kept; check the server's address and the token, and open again.")
}

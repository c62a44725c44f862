internal import MartletModel
internal import MartletProtocol
internal import MartletStore

/// A complete check of a device's data. It hashes, compares and repairs one part after another.
///
/// It is a value, which the holder of the device's store advances. Between two steps anything may
/// happen to the device.
package struct CheckRun: Sendable {
    /// The number of records that are hashed at once.
    static let batchRecords = 65_536
    /// The most times that one part is hashed, if too much is changed meanwhile each time.
    static let mostTries = 5
    /// The number of answers without a comparison after which the server counts as unable to
    /// compare.
    static let mostSilences = 3

    let manner: CheckRepair
    private let batchRecords: Int
    package private(set) var report = CheckReport()
    private var cursor: CheckCursor? = CheckCursor()
    private var next: CheckCursor?
    private var check: SelfCheck?
    /// The part after the present one, if it was hashed already.
    private var ahead: HashedBatch?
    private var excluded: [String: Set<String>] = [:]
    private var tries = 0
    private var silences = 0
    /// The name that the answer has to repeat.
    private var name: String?
    private var hasBegun = false

    package init(repairing manner: CheckRepair, batchRecords: Int = Self.batchRecords) {
        self.manner = manner
        self.batchRecords = batchRecords
    }

    /// Restores capture. It must be called before anything else turns capture on again.
    package mutating func begin(_ store: DeviceStore) throws {
        guard !hasBegun else { return }
        hasBegun = true
        report.isCaptureRestored = try store.restoreCapture()
    }

    /// Returns the next request's body; nil if everything is compared.
    package mutating func request(_ store: DeviceStore, now: Int64) throws -> [UInt8]? {
        try begin(store)
        while true {
            if var current = check {
                if let request = current.next() {
                    check = current
                    let name = store.newIdentity()
                    self.name = name
                    return try store.checkBody(request, name: name)
                }
                report.recordCount += current.records.reduce(0) { $0 + $1.ids.count }
                goOn()
            } else {
                guard let cursor else { return nil }
                let batch =
                    try ahead
                    ?? store.hashConfirmed(
                        from: cursor, without: excluded, limit: batchRecords, now: now)
                ahead = nil
                next = batch.next
                // A part may be hashed more than once.
                for row in batch.unreadable where !report.unreadable.contains(row) {
                    report.unreadable.append(row)
                }
                check = SelfCheck(
                    revision: batch.revision,
                    records: batch.records.filter {
                        !report.unknownTypes.contains($0.type.name)
                    })
            }
        }
    }

    /// Hashes the part after the one that is compared, while the server works on that. The hashes
    /// show the moment of the hashing, like those of any part.
    package mutating func prepare(_ store: DeviceStore, now: Int64) throws {
        guard ahead == nil, check != nil, let next else { return }
        ahead = try store.hashConfirmed(
            from: next, without: excluded, limit: batchRecords, now: now)
    }

    /// Handles the answer to the last request, and repairs the differences that it shows.
    /// - Throws: `SyncError` for an answer that is none; `SQLiteError` if the file fails.
    package mutating func take(_ body: [UInt8], _ store: DeviceStore, now: Int64) throws {
        guard var current = check else { return }
        let answer = try decoded(body, store)
        guard let found = answer.check else {
            if try store.standing.view ?? 0 != 0 {
                throw SyncError(
                    .rejected,
                    "The server compares no data with the device of somebody who sees a part of it."
                )
            }
            silences += 1
            guard silences < Self.mostSilences else {
                throw SyncError(.rejected, "The server does not compare data; update it.")
            }
            // The server did not know the device before this request, and does now. The request is
            // repeated.
            repeatPart()
            return
        }
        let outcome: SelfCheck.Outcome
        do {
            outcome = try current.take(found)
        } catch {
            throw SyncError(.violation, "The server compared something else than it was asked to.")
        }
        check = current
        guard !outcome.isBehind, found.revision >= current.revision else { return again() }
        if !outcome.differences.isEmpty {
            let findings = try store.repair(
                outcome.differences, of: current.records, at: current.revision...found.revision,
                by: manner, now: now)
            guard let findings else { return again() }
            report.findings += findings
        }
        report.unknownTypes += outcome.unknownTypes
        guard outcome.unknownAttributes.isEmpty else {
            for (type, names) in outcome.unknownAttributes {
                excluded[type, default: []].formUnion(names)
            }
            repeatPart()
            return
        }
    }

    private func decoded(_ body: [UInt8], _ store: DeviceStore) throws -> SyncAnswer {
        let answer: SyncAnswer
        do {
            answer = try SyncCoder.decodeAnswer(body)
        } catch {
            throw SyncError(unreadable: body, error)
        }
        guard (answer.request ?? name) == name else {
            throw SyncError(.offline, "The answer to another request came; check again.")
        }
        if let own = try store.dataSet, let other = answer.dataSet, own != other {
            throw SyncError(.wrongDataSet, "The server answers for another data set.")
        }
        return answer
    }

    /// Hashes the part again, because the state in which it was compared is gone.
    private mutating func again() {
        tries += 1
        guard tries >= Self.mostTries else { return repeatPart() }
        report.unfinishedTypes += check?.records.map(\.type.name) ?? []
        goOn()
    }

    /// Begins the present part again. The part hashed ahead may have other attributes.
    private mutating func repeatPart() {
        check = nil
        ahead = nil
    }

    private mutating func goOn() {
        cursor = next
        check = nil
        tries = 0
        silences = 0
    }
}

extension DeviceStore {
    /// Builds a request that carries only a comparison.
    fileprivate func checkBody(_ check: CheckRequest, name: String) throws -> [UInt8] {
        let standing = try standing
        var request = SyncRequest(maxRevision: standing.revision)
        request.clientID = try clientID
        request.protocolVersion = WireVersion.current
        request.dataSet = standing.dataSet ?? expectedDataSet
        (request.lineage, request.partOf) = (standing.lineage, standing.partOf)
        request.schema = applying.schema.fingerprint
        request.check = check
        request.request = name
        return try SyncCoder.encode(request)
    }
}

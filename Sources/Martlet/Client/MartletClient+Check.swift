public import MartletDevice
internal import MartletModel
internal import MartletProtocol
internal import SystemKit

extension MartletClient {
    /// Compares all confirmed data with the server's, and repairs the rows that differ.
    ///
    /// The device and the server exchange hashes of ranges, and the rows that differ. The device
    /// does not refetch the rest. Queued edits stay on top of the repaired rows. Other writes may
    /// continue on the device and the server. Missing capture triggers are created again.
    /// - Parameter manner: The action for edits that were not captured.
    /// - Returns: The differences found and the repairs made; an empty report if there were none.
    /// - Throws: `SyncError` if an exchange fails, or if the server cannot compare; earlier repairs
    ///   stay. `StoreError` if the file fails.
    @discardableResult
    public func check(repairing manner: CheckRepair = .revert) async throws -> CheckReport {
        var run = CheckRun(repairing: manner)
        try await step(&run) { run, store, _ in try run.begin(store) }
        try await sync()
        guard let transport = try await device.run({ $0.transport }) else { return CheckReport() }
        while let body = try await step(&run, { try $0.request($1, now: $2) }) {
            // The next part is hashed meanwhile, because most of a check is hashing on both sides.
            async let coming = Self.exchange(body, over: transport)
            try await step(&run) { try $0.prepare($1, now: $2) }
            let answer: TransportAnswer
            do {
                answer = try await coming.get()
            } catch {
                throw SyncError(error)
            }
            guard answer.status == 200 else {
                let problem = SyncCoder.decodeProblem(answer.body, status: answer.status)
                throw SyncError(
                    SyncError.Kind(problem, status: answer.status), problem.detail)
            }
            try await step(&run) { try $0.take(answer.body, $1, now: $2) }
        }
        return run.report
    }

    private static func exchange(
        _ body: [UInt8], over transport: any Transport
    ) async -> Result<TransportAnswer, TransportFailure> {
        do throws(TransportFailure) {
            return .success(try await transport.exchange(body))
        } catch {
            return .failure(error)
        }
    }

    private func step<Result: Sendable>(
        _ run: inout CheckRun,
        _ body: @escaping @Sendable (inout CheckRun, DeviceStore, Int64) throws -> Result
    ) async throws -> Result {
        let before = run
        let (after, result) = try await device.run { driver in
            try driver.decide { store, now in
                var run = before
                let result = try body(&run, store, now)
                return (run, result)
            }
        }
        run = after
        return result
    }
}

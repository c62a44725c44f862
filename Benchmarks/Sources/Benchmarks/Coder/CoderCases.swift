import CYajl
import MartletModel
import MartletProtocol

/// Reading and writing the wire's JSON, beside a C library that only finds the tokens.
enum CoderCases {
    private static let sampleCount = 9

    @Sendable static func run() async throws {
        try compare("one set of 100,000 records", CoderDocument.oneLargeSet)
        try compare("the same with text ids in no order", CoderDocument.textIDs)
        try compare("50,000 sets of one record", CoderDocument.manySmallSets)
    }

    private static func compare(_ document: String, _ answer: SyncAnswer) throws {
        let bytes = try SyncCoder.encode(answer)
        guard try SyncCoder.decodeAnswer(bytes) == answer else {
            throw Mismatch(document: document)
        }
        let megabytes = Double(bytes.count) / 1_000_000
        let name = "\(document), \((megabytes * 10).rounded() / 10) MB"
        let floor = sample {
            let tokens = bytes.withUnsafeBufferPointer { yajl_floor($0.baseAddress, $0.count) }
            precondition(tokens > 0, "the floor reads the whole document")
        }
        let read = try sample { _ = try SyncCoder.decodeAnswer(bytes) }
        let written = try sample { _ = try SyncCoder.encode(answer) }
        try report("coder/floor (libyajl, callbacks only): \(name)", floor, megabytes)
        try report("coder/read: \(name)", read, megabytes, expected: "a third of the floor")
        try report("coder/write: \(name)", written, megabytes, expected: "70 MB/s")
    }

    private static func report(
        _ name: String, _ seconds: [Double], _ megabytes: Double, expected: String? = nil
    ) throws {
        try Measurement(
            name, unit: "MB per CPU second", samples: seconds.map { megabytes / $0 },
            expected: expected
        ).report()
    }

    /// CPU seconds of each of several runs, after one that warms up.
    private static func sample(_ body: () throws -> Void) rethrows -> [Double] {
        try body()
        return try (0..<sampleCount).map { _ in
            let start = Machine.processorSeconds
            try body()
            return Machine.processorSeconds - start
        }
    }

    /// What was read is not what was written.
    private struct Mismatch: Error {
        var document: String
    }
}

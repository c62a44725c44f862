import MartletModel
import MartletProtocol
import Testing

/// Real requests at the same time, against a server that listens.
@Suite("A server that many use at once", .timeLimit(.minutes(5)))
struct ConcurrencyTests {
    private static let writers = 16
    private static let readers = 3
    private static let setsPerWriter = 25

    @Test("16 writers, 3 readers: no revision twice, none before its predecessor, one order")
    func orderOfRevisions() async throws {
        let server = try await LiveServer()
        let total = Revision(Self.writers * Self.setsPerWriter)
        let (own, read) = try await withThrowingTaskGroup(
            of: (isWriter: Bool, sets: [ChangeSet]).self
        ) { group in
            for writer in 0..<Self.writers {
                let device = try server.device("writer-\(writer)")
                group.addTask { (true, try await Self.write(device, writer)) }
            }
            for reader in 0..<Self.readers {
                let device = try server.device("reader-\(reader)")
                group.addTask { (false, try await Self.read(device, until: total)) }
            }
            var own: [ChangeSet] = []
            var read: [[ChangeSet]] = []
            for try await result in group {
                if result.isWriter { own += result.sets } else { read.append(result.sets) }
            }
            return (own, read)
        }
        await server.stop()

        // Every writer was told a revision for each of its sets, and no two the same.
        #expect(own.compactMap(\.revision).sorted() == Array(1...total))
        // Readers went through the revisions one by one (`WireDevice` checks); here, that each
        // revision is the same set to all of them, and the set its writer was told of.
        let told = own.sorted { ($0.revision ?? 0) < ($1.revision ?? 0) }.map(\.mark)
        #expect(!told.contains(nil))
        for sets in read {
            #expect(sets.map(\.mark) == told)
        }
    }

    /// Writes marks; gives the verdicts.
    private static func write(_ device: WireDevice, _ writer: Int) async throws -> [ChangeSet] {
        var device = device
        var verdicts: [ChangeSet] = []
        for number in 0..<setsPerWriter {
            let verdict = try await device.exchange([
                WireDevice.mark(writer: writer, number: number)
            ])
            let accepted = try #require(verdict)
            #expect(accepted.conflict == false)
            verdicts.append(accepted)
        }
        return verdicts
    }

    /// Asks again and again until a revision is reached; gives what came.
    private static func read(
        _ device: WireDevice, until revision: Revision
    ) async throws -> [ChangeSet] {
        var device = device
        while device.revision < revision { try await device.exchange() }
        return device.received
    }

    @Test("50 devices incrementing one record lose no update")
    func increments() async throws {
        let devices = 50
        let each = 2
        let server = try await LiveServer()
        var first = try server.device("first")
        let created = try await first.exchange([Counter.creation])
        let id = try #require(created?.types.first?.create.first)

        let refusals = try await withThrowingTaskGroup(of: Int.self) { group in
            for number in 0..<devices {
                let device = try server.device("device-\(number)")
                group.addTask { try await Counter.increment(device, id, times: each) }
            }
            return try await group.reduce(0, +)
        }

        try await first.exchange()
        await server.stop()
        var counter = Counter()
        first.received.forEach { counter.apply($0) }
        #expect(counter.value == Int64(devices * each))
        // One accepted set for each increment, and nothing else.
        #expect(first.revision == Revision(1 + devices * each))
        // Otherwise nobody competed, and the test showed nothing.
        #expect(refusals > 0)
    }

    @Test("two data sets share nothing")
    func dataSets() async throws {
        let server = try await LiveServer()
        let sets = 20
        // The same client name, identifiers and values in both, at the same time.
        let results = try await withThrowingTaskGroup(of: WireDevice.self) { group in
            for token in [LiveServer.league, LiveServer.club] {
                let device = try server.device("twin", token: token)
                group.addTask {
                    var device = device
                    for number in 0..<sets {
                        let writer = token == LiveServer.league ? 1 : 2
                        let verdict = try await device.exchange([
                            WireDevice.mark(writer: writer, number: number)
                        ])
                        #expect(verdict?.conflict == false)
                    }
                    return device
                }
            }
            return try await group.reduce(into: [WireDevice]()) { $0.append($1) }
        }
        #expect(results.map(\.revision) == [Revision(sets), Revision(sets)])
        #expect(results[0].dataSet != results[1].dataSet)

        var writers: [Set<Value>] = []
        for token in [LiveServer.league, LiveServer.club] {
            var reader = try server.device("reader", token: token)
            try await reader.exchange()
            #expect(reader.revision == Revision(sets))
            writers.append(Set(reader.received.compactMap { $0.mark?.first }))
        }
        await server.stop()
        #expect(writers == [[.integer(1)], [.integer(2)]])
    }
}

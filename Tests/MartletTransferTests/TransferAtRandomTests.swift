import Foundation
import Martlet
import MartletModel
import MartletStore
import MartletTesting
import MartletTransfer
import TestFolders
import Testing

@Suite("Files that go out and come in at random")
struct TransferAtRandomTests {
    /// The worlds of each test. MARTLET_TRANSFERS=1000 takes others, from the seed 1,000 on.
    private static let worlds: UInt64 = 60
    private static let first = number("MARTLET_TRANSFERS") ?? 0
    /// MARTLET_TRANSFER=146 runs this one alone.
    private static let only = number("MARTLET_TRANSFER")

    private static func number(_ name: String) -> UInt64? {
        ProcessInfo.processInfo.environment[name].flatMap { UInt64($0) }
    }

    private static var seeds: [UInt64] { only.map { [$0] } ?? Array(first..<(first + worlds)) }

    // MARK: - Out and in

    @Test("what is exported is written into its folder alone, and comes back as it was")
    func roundTrips() async throws {
        var done = 0
        for seed in Self.seeds {
            var world = try TransferWorld(seed: seed)
            let source: MartletClient
            do {
                source = try await world.client("source")
            } catch let error as StoreError where error.kind == .schema {
                // Names that no tables can have, or not together.
                continue
            }
            do {
                try await world.fill(source)
                if try await roundTrip(source, world) { done += 1 }
            } catch let error as StoreError
                where error.kind == .constraint && world.countsNull(error.message)
            {
                // A reference to a record further down is null until that record comes.
            } catch {
                Issue.record("\(error) \(world.story)")
            }
            await source.close()
        }
        #expect(Self.only != nil || done > Self.seeds.count / 3)
    }

    /// - Returns: Whether all tables went out and came in.
    private func roundTrip(_ source: MartletClient, _ world: TransferWorld) async throws -> Bool {
        let schema = try await source.read { $0.schema }
        let out = world.folder.url.appendingPathComponent("out/deep")
        let before = try world.files()
        var types = schema.types.map(\.name)
        let isRefused = types.contains { $0.utf8.contains(UInt8(ascii: "/")) }
        if isRefused {
            await #expect(throws: TransferError.self, "\(world.story)") {
                try await Exporter(client: source).run(schema: schema, folder: out)
            }
            #expect(try world.files() == before, "\(world.story)")
            types.removeAll { $0.utf8.contains(UInt8(ascii: "/")) }
        }
        let written = try await Exporter(client: source).run(
            schema: schema, types: types, folder: out)
        let new = try world.files().subtracting(before)
        let expected = types.map { "out/deep/\($0).csv" } + ["out", "out/deep"]
        #expect(new == Set(expected), "\(world.story)")
        #expect(written.map(\.type) == types && written.allSatisfy { $0.unreadable.isEmpty })
        guard !isRefused else { return false }

        let copy = try await world.client("copy")
        let files = try CSVFile.find([out.path])
        #expect(Set(files.map(\.type)) == Set(types), "\(world.story)")
        var options = ImportOptions()
        options.setSize = 3
        let report = try await Importer(client: copy, options: options)
            .run(files.map { CSVSource($0) }, schema: schema)
        #expect(report.records == written.reduce(0) { $0 + $1.recordCount }, "\(world.story)")
        let described = try await TransferWorld.described(source)
        let copied = try await TransferWorld.described(copy)
        await copy.close()
        #expect(copied == described, "\(difference(described, copied)) \(world.story)")
        let served = try world.served("copy")
        #expect(served == described, "\(difference(described, served)) \(world.story)")
        return true
    }

    private func difference(_ one: [String], _ other: [String]) -> String {
        "\(Set(one).subtracting(other).sorted()) became \(Set(other).subtracting(one).sorted())"
    }

    // MARK: - Files of others

    @Test("an import refuses a file before anything is written, or the server takes all of it")
    func othersFiles() async throws {
        var (taken, refused) = (0, 0)
        for seed in Self.seeds {
            var world = try TransferWorld(seed: seed &+ 7_000_000)
            let client: MartletClient
            do {
                client = try await world.client("copy")
            } catch let error as StoreError where error.kind == .schema {
                continue
            }
            do {
                try world.writeFile(of: try await client.read { $0.schema })
                let files = try CSVFile.find([world.folder.path + "/in"])
                let schema = try await client.read { $0.schema }
                do {
                    _ = try await Importer(client: client)
                        .run(files.map { CSVSource($0) }, schema: schema)
                    let imported = try await TransferWorld.described(client)
                    await client.close()
                    let served = try world.served("copy")
                    #expect(served == imported, "\(difference(imported, served)) \(world.story)")
                    taken += 1
                } catch let fault as CSVFault {
                    #expect(fault.line > 0 && fault.message.count > 10, "\(fault) \(world.story)")
                    refused += 1
                    #expect(
                        try await TransferWorld.described(client).isEmpty, "\(fault) \(world.story)"
                    )
                } catch let error as StoreError where error.kind == .constraint {
                    refused += 1
                }
            } catch {
                Issue.record("\(error) \(world.story)")
            }
            await client.close()
        }
        #expect(Self.only != nil || taken > 5 && refused > 5, "\(taken) taken, \(refused) refused")
    }

    // MARK: - Files without declarations

    @Test("tables that are inferred from files take these, and lose no digit of them")
    func inferred() async throws {
        var taken = 0
        for seed in Self.seeds {
            let files = try InferredFiles(seed: seed)
            do {
                let inference: SchemaInference
                do {
                    inference = try SchemaInference(try CSVFile.find([files.folder.path + "/in"]))
                } catch is CSVFault {
                    continue
                }
                let world = try TransferWorld(seed: seed, script: inference.script)
                let client = try await world.client("copy")
                let schema = try await client.read { $0.schema }
                let sources = try CSVFile.find([files.folder.path + "/in"]).map { CSVSource($0) }
                _ = try await Importer(client: client).run(sources, schema: schema)
                let out = world.folder.url.appendingPathComponent("out")
                _ = try await Exporter(client: client).run(schema: schema, folder: out)
                let imported = try await TransferWorld.described(client)
                await client.close()
                #expect(try world.served("copy") == imported, "\(world.story)\n\(files.story)")
                let before = try files.described(in: files.folder.path + "/in", inference)
                let after = try files.described(in: out.path, inference)
                #expect(
                    before == after,
                    "\(difference(before, after)) \(world.story)\n\(files.story)")
                taken += 1
            } catch {
                Issue.record("\(error) seed \(seed)\n\(files.story)")
            }
        }
        #expect(Self.only != nil || taken > Self.seeds.count / 2)
    }
}

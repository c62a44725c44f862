import MartletModel
import MartletProtocol
import Testing

/// Damaged messages: whatever comes, the reader ends with an answer, and what it takes it can
/// write and read again.
@Suite("Damaged messages")
struct DamageTests {
    @Test("are refused or read soundly", arguments: [6, 7, 8, Dice.freshSeed])
    func damageOfMessages(seed: UInt64) throws {
        var documents = RandomDocuments(seed: seed)
        for round in 0..<1200 {
            let isRequest = round.isMultiple(of: 2)
            let sound =
                isRequest
                ? try SyncCoder.encode(documents.request())
                : try SyncCoder.encode(documents.answer())
            let bytes = documents.damage(sound)
            if isRequest {
                guard let request = try? SyncCoder.decodeRequest(bytes) else { continue }
                check(request.changeSets, in: bytes, seed)
                guard request.changeSets.allSatisfy({ $0.defect == nil }) else { continue }
                let again = try SyncCoder.decodeRequest(SyncCoder.encode(request))
                #expect(again == request, "seed \(seed)")
            } else {
                guard let answer = try? SyncCoder.decodeAnswer(bytes) else { continue }
                check(answer.changeSets, in: bytes, seed)
                guard answer.changeSets.allSatisfy({ $0.defect == nil }) else { continue }
                let again = try SyncCoder.decodeAnswer(SyncCoder.encode(answer))
                #expect(again == answer, "seed \(seed)")
            }
        }
    }

    private func check(_ sets: [ChangeSet], in bytes: [UInt8], _ seed: UInt64) {
        for set in sets {
            #expect(set.defect == nil || set.types.isEmpty, "seed \(seed)")
            #expect(set.source.start < set.source.end, "seed \(seed)")
            #expect(set.source.end <= bytes.count, "seed \(seed)")
            for type in set.types {
                let ids = type.create + type.update + type.delete
                #expect(Set(ids).count == ids.count, "seed \(seed)")
                #expect(!ids.contains(.integer(0)), "seed \(seed)")
                let entries = type.entries.map(\.id)
                #expect(Set(entries).count == entries.count, "seed \(seed)")
                #expect(Set(entries).isSubset(of: ids), "seed \(seed)")
                #expect(Set(type.create + type.update).isSubset(of: entries), "seed \(seed)")
            }
        }
    }

    @Test("of every length are refused when cut short")
    func truncation() throws {
        let bytes = try SyncCoder.encode(MessageBytesTests.request)
        for count in 0..<bytes.count {
            #expect(throws: WireFault.self) {
                try SyncCoder.decodeRequest([UInt8](bytes[..<count]))
            }
        }
    }
}

import Foundation
import MartletModel
import MartletProtocol
import Testing

/// The reader and the writer beside Foundation's Codable.
///
/// Foundation is meant to be told apart in these points only:
/// - it takes an object with the same member twice, a comma after the last element, and a leading
///   byte order mark; it nests 512 deep;
/// - an integer beyond 64 bits it reads as a double; 2.0 is an integer to it.
@Suite("Foundation as the oracle")
struct OracleTests {
    @Test("reads every document written here as what was written", arguments: [1, Dice.freshSeed])
    func writtenDocuments(seed: UInt64) throws {
        var documents = RandomDocuments(seed: seed)
        for _ in 0..<300 {
            let attributes = documents.attributes()
            let bytes = try SyncCoder.encode(attributes)
            let expected = Tree.object(
                Dictionary(
                    uniqueKeysWithValues: zip(
                        attributes.names, attributes.values.map(Tree.value))))
            let found = try JSONDecoder().decode(Tree.self, from: Data(bytes))
            #expect(found == expected, "seed \(seed)")
            #expect(try SyncCoder.decodeAttributes(bytes) == attributes, "seed \(seed)")
        }
    }

    @Test("messages survive writing and reading", arguments: [2, Dice.freshSeed])
    func messages(seed: UInt64) throws {
        var documents = RandomDocuments(seed: seed)
        for _ in 0..<300 {
            let request = documents.request()
            let bytes = try SyncCoder.encode(request)
            let found = try SyncCoder.decodeRequest(bytes)
            #expect(found == request, "seed \(seed)")
            #expect(
                try JSONDecoder().decode(Tree.self, from: Data(bytes)) == Tree(bytes),
                "seed \(seed)")
            let answer = documents.answer()
            #expect(
                try SyncCoder.decodeAnswer(SyncCoder.encode(answer)) == answer, "seed \(seed)")
        }
    }

    @Test("agrees on what is JSON, damaged documents included", arguments: [3, Dice.freshSeed])
    func agreement(seed: UInt64) throws {
        var documents = RandomDocuments(seed: seed)
        var (accepted, refused) = (0, 0)
        for _ in 0..<1500 {
            let sound = try SyncCoder.encode(documents.changeSet())
            let bytes = documents.damage(sound)
            let theirs = try? JSONDecoder().decode(Tree.self, from: Data(bytes))
            do throws(WireFault) {
                let ours = try Tree(bytes)
                accepted += 1
                #expect(ours == theirs, "seed \(seed): \(Self.shown(bytes))")
            } catch {
                refused += 1
                if theirs != nil {
                    #expect(
                        Self.isDeliberate(error, bytes),
                        "seed \(seed): \(error) \(Self.shown(bytes))")
                }
            }
        }
        #expect(accepted > 50 && refused > 50)
    }

    /// Whether a refusal of what Foundation takes is one of the points listed above.
    private static func isDeliberate(_ fault: WireFault, _ bytes: [UInt8]) -> Bool {
        if fault.message.contains("twice") || fault.message.contains("byte order mark")
            || fault.message.contains("Nested deeper") || fault.message.contains("64 bits")
        {
            return true
        }
        // A comma before a closing bracket.
        guard fault.offset < bytes.count, "]}".utf8.contains(bytes[fault.offset]) else {
            return false
        }
        let before = bytes[..<fault.offset].last { !" \n\r\t".utf8.contains($0) }
        return before == UInt8(ascii: ",")
    }

    private static func shown(_ bytes: [UInt8]) -> String {
        String(decoding: bytes, as: UTF8.self).debugDescription
    }

    @Test("reads numbers as Foundation does, to the last bit", arguments: [4, Dice.freshSeed])
    func numbers(seed: UInt64) throws {
        var dice = Dice(seed: seed)
        for _ in 0..<3000 {
            var text = dice.once(in: 2) ? "-" : ""
            text += "\(dice.next() >> UInt64(dice.below(64)))"
            if dice.once(in: 2) { text += ".\(dice.next() >> UInt64(dice.below(64)))" }
            if dice.once(in: 2) {
                text += "\(dice.pick(["e", "E"]))\(dice.pick(["", "-", "+"]))\(dice.below(330))"
            }
            let bytes = [UInt8]("[\(text)]".utf8)
            var reader = JSONReader(bytes)
            var found: Value?
            do throws(WireFault) {
                try reader.readArray { (reader) throws(WireFault) in
                    found = try reader.readValue()
                }
            } catch {
                #expect(error.message.contains("64 bits") || error.message.contains("too large"))
            }
            let theirs = Double(text).flatMap { $0.isFinite ? $0 : nil }
            switch found {
            case .real(let number): #expect(number.bitPattern == theirs?.bitPattern, "\(text)")
            case .integer(let number): #expect(String(number) == text || text == "-0", "\(text)")
            default: #expect(Int64(text) == nil, "\(text)")
            }
        }
    }

    @Test(
        "writes doubles so that they read back as the same double", arguments: [5, Dice.freshSeed])
    func doubles(seed: UInt64) throws {
        var dice = Dice(seed: seed)
        let edges: [Double] = [
            0, -0.0, 1, 1e15, 1e16, 1e17, 1e22, 1e23, .leastNonzeroMagnitude, .leastNormalMagnitude,
            .greatestFiniteMagnitude, 0.1, 1 / 3, 9_007_199_254_740_992,
        ]
        for index in 0..<2000 {
            let number =
                index < edges.count ? edges[index] : Double(bitPattern: dice.next())
            guard number.isFinite else { continue }
            let attributes = Attributes(names: ["n"], values: [.real(number)])
            let bytes = try SyncCoder.encode(attributes)
            guard case .real(let found)? = try SyncCoder.decodeAttributes(bytes)["n"] else {
                Issue.record("not a real: \(number)")
                continue
            }
            #expect(found.bitPattern == number.bitPattern)
        }
    }
}

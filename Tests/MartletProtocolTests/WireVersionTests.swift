import MartletModel
import MartletProtocol
import Testing

/// Guards the wire version: the words and types of the wire cannot change unnoticed.
@Suite("Wire version")
struct WireVersionTests {
    @Test("the wire of version 1 is what it was")
    func fingerprint() throws {
        var answer = SyncAnswer(
            maxRevision: 1, more: true, changeSets: MessageBytesTests.request.changeSets)
        answer.dataSet = "d"
        answer.lineage = "l"
        answer.schema = "s"
        answer.changeSets[0].revision = 1
        answer.changeSets[0].conflict = true
        answer.changeSets[0].reason = .stale
        answer.changeSets[0].message = "m"
        answer.changeSets[0].retryAfter = 1
        answer.changeSets[0].types[0].entries[0].oldID = .integer(-1)
        let reasons: [RefusalReason] = [
            .stale, .permission, .constraint, .dependency, .unknownType, .unknownAttribute,
            .invalid, .busy,
        ]
        var bytes = try SyncCoder.encode(MessageBytesTests.request) + SyncCoder.encode(answer)
        bytes += SyncCoder.encode(Problem(status: 400, kind: "k", detail: "d", retryAfter: 1))
        for word in reasons.map(\.rawValue) + ReservedWords.types.sorted()
            + ReservedWords.attributes.sorted()
        {
            bytes += [UInt8](word.utf8)
        }
        // FNV-1a, 64 bits.
        let hash = bytes.reduce(0xCBF2_9CE4_8422_2325 as UInt64) {
            ($0 ^ UInt64($1)) &* 0x100_0000_01B3
        }
        #expect(
            hash == 8_477_594_703_119_488_693,
            """
            The wire has changed. If older devices or servers can misread the new form, raise \
            WireVersion.current and write its line of history; then put the new hash here.
            """)
        #expect(WireVersion.current == 1)
        #expect(WireVersion.oldest <= WireVersion.current)
    }
}

import MartletModel
import MartletProtocol
import SmallWorlds
import Testing

@testable import Martlet
@testable import MartletDevice

@Suite("What may be done again of a lost history")
struct LostHistoryTests {
    private func truth(_ revision: Revision, _ name: Value) -> LostHistory.Truth {
        LostHistory.Truth(revision: revision, image: ["name": name, "city": .null])
    }

    @Test("an edit of what its author has seen: this state before the parting, or his own base")
    func seen() {
        #expect(LostHistory.hasSeen(truth(7, "A"), base: ["name": "B"], common: 7))
        #expect(!LostHistory.hasSeen(truth(8, "A"), base: ["name": "B"], common: 7))
        #expect(LostHistory.hasSeen(truth(8, "A"), base: ["name": "A"], common: 7))
        #expect(
            !LostHistory.hasSeen(
                truth(8, "A"), base: ["name": "A", "city": "Oslo"], common: 7))
        #expect(!LostHistory.hasSeen(truth(8, "A"), base: nil, common: 7))
    }

    @Test("a number names the same record where either history knew it before the parting")
    func meant() {
        func isMeant(
            _ truth: LostHistory.Truth?, known: Revision?, image: Attributes? = nil
        ) -> Bool {
            LostHistory.isMeant(truth, known: known, image: image, common: 7)
        }
        #expect(isMeant(nil, known: 7))
        #expect(!isMeant(nil, known: 8))
        #expect(isMeant(truth(7, "A"), known: 9))
        #expect(!isMeant(truth(8, "A"), known: 9))
        #expect(!isMeant(truth(8, "A"), known: nil))
        #expect(isMeant(truth(8, "A"), known: 9, image: ["name": "A"]))
        #expect(!isMeant(truth(8, "A"), known: 9, image: ["name": "B"]))
    }
}

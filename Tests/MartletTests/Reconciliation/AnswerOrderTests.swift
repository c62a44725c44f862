import MartletModel
import MartletProtocol
import Testing

@testable import Martlet
@testable import MartletDevice

@Suite("The order of an answer's sets")
struct AnswerOrderTests {
    private func set(
        _ revision: Revision?, difference: Bool = false, conflict: Bool? = nil
    ) -> ChangeSet {
        var set = ChangeSet()
        set.revision = revision
        set.isDifference = difference
        set.conflict = conflict
        return set
    }

    private func disorder(_ last: Revision, _ sets: [ChangeSet], after cursor: Revision = 2)
        -> String?
    {
        SyncAnswer(maxRevision: last, changeSets: sets).disorder(after: cursor)
    }

    @Test("is sound where what is new ascends, whatever is old, own or refused stands beside it")
    func sound() {
        #expect(disorder(2, []) == nil)
        #expect(disorder(5, [set(3), set(4), set(5)]) == nil)
        #expect(disorder(5, [set(2), set(1), set(2), set(5)]) == nil)
        #expect(disorder(5, [set(3), set(nil, conflict: true)]) == nil)
        #expect(disorder(9, [set(9, difference: true), set(4), set(7)]) == nil)
    }

    @Test("is not where an older one follows, one comes twice, or one is beyond the end")
    func unsound() {
        #expect(disorder(5, [set(4), set(3)])?.contains("Revision 3 comes after") == true)
        #expect(disorder(5, [set(3), set(3)])?.contains("Revision 3 comes after") == true)
        #expect(disorder(5, [set(6)])?.contains("ends at 5") == true)
        #expect(disorder(5, [set(9, difference: true)])?.contains("ends at 5") == true)
        #expect(disorder(5, [set(nil)])?.contains("no revision") == true)
    }
}

import MartletModel
import MartletServerCore
import Testing

@Suite("What is kept of a row")
struct RowFactsTests {
    @Test("the last revision by anyone else follows the author")
    func othersRevision() {
        var facts = RowFacts(revision: 5, author: 1, others: 0)
        #expect(facts.newestByOthers(to: 1) == 0)
        #expect(facts.newestByOthers(to: 2) == 5)
        facts = facts.changed(by: 1, at: 6, isDeleted: false)
        #expect(facts == RowFacts(revision: 6, author: 1, others: 0))
        facts = facts.changed(by: 2, at: 7, isDeleted: false)
        #expect(facts == RowFacts(revision: 7, author: 2, others: 6))
        facts = facts.changed(by: 2, at: 8, isDeleted: true)
        #expect(facts == RowFacts(revision: 8, author: 2, others: 6, isDeleted: true))
        #expect(facts.newestByOthers(to: 2) == 6)
        #expect(facts.newestByOthers(to: 1) == 8)
    }

    @Test("no device is nobody's own")
    func nobody() {
        let facts = RowFacts(revision: 5, author: 0, others: 2)
        #expect(facts.newestByOthers(to: 0) == 5)
        #expect(
            facts.changed(by: 0, at: 6, isDeleted: false)
                == RowFacts(revision: 6, author: 0, others: 5))
    }
}

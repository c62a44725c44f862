import MartletModel
import MartletProtocol
import Testing

@Suite("Relations between limits")
struct LimitRelationTests {
    @Test("hold, each of them", arguments: LimitRelation.all.indices)
    func holds(index: Int) {
        #expect(LimitRelation.all[index].holds, "\(LimitRelation.all[index].rule)")
    }

    @Test("are checked together")
    func checkOfLimits() {
        #expect(LimitRelation.all.count >= 8)
        LimitRelation.check()
    }
}

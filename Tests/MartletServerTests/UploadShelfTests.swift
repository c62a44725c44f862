import Testing

@testable import MartletServer

@Suite("Bodies that come in pieces")
struct UploadShelfTests {
    private let key = UploadShelf.Key(token: "t", name: "n")

    @Test("grow by what follows, pass over what does not, and are there once all is")
    func grow() {
        let shelf = UploadShelf()
        #expect(shelf.add([1, 2], at: 0, of: 5, key).received == 2)
        // The same piece again after a lost answer; a piece that leaves a gap; one that is too
        // long.
        #expect(shelf.add([1, 2], at: 0, of: 5, key).received == 2)
        #expect(shelf.add([9], at: 3, of: 5, key).received == 2)
        #expect(shelf.add([3, 4, 5, 6], at: 2, of: 5, key).received == 2)
        #expect(shelf.add([3], at: 2, of: 5, UploadShelf.Key(token: "u", name: "n")).received == 0)
        let end = shelf.add([3, 4, 5], at: 2, of: 5, key)
        #expect(end.received == 5 && end.whole == [1, 2, 3, 4, 5])
        // The last piece, sent again, asks for the answer again.
        #expect(shelf.add([3, 4, 5], at: 2, of: 5, key).whole == [1, 2, 3, 4, 5])
    }

    @Test("are bounded together: the longest untouched goes, and its sender begins again")
    func boundedShelf() {
        let shelf = UploadShelf(limit: 10)
        let other = UploadShelf.Key(token: "t", name: "m")
        #expect(shelf.add([1, 2, 3, 4, 5, 6], at: 0, of: 8, key).received == 6)
        #expect(shelf.add([1, 2, 3, 4, 5, 6], at: 0, of: 8, other).received == 6)
        #expect(shelf.add([7, 8], at: 6, of: 8, key).received == 0)
        #expect(shelf.add([7, 8], at: 6, of: 8, other).whole?.count == 8)
        #expect(shelf.add([UInt8](repeating: 1, count: 11), at: 0, of: 12, key).received == 0)
    }

    @Test("of one user make room for one another, not for those of others")
    func shared() {
        func key(_ name: Int, _ token: String, _ party: String?) -> UploadShelf.Key {
            UploadShelf.Key(token: token, name: "\(name)", party: party)
        }
        let shelf = UploadShelf(limit: 100)
        let slow = key(0, "slow", nil)
        #expect(shelf.add([1, 2, 3], at: 0, of: 6, slow).received == 3)
        // Many bytes, by two tokens of one user; then many bodies.
        for name in 0..<6 {
            let many = key(name, name < 3 ? "a" : "b", "eve")
            #expect(shelf.add([UInt8](repeating: 1, count: 40), at: 0, of: 50, many).received == 40)
        }
        for name in 0..<1_500 { _ = shelf.add([], at: 0, of: 50, key(name, "a", "eve")) }
        #expect(shelf.add([4, 5, 6], at: 3, of: 6, slow).whole == [1, 2, 3, 4, 5, 6])
        shelf.keep(
            UploadShelf.Answer(
                status: 200, isGzip: false, bytes: [UInt8](repeating: 1, count: 40)), slow)
        for name in 0..<9 {
            _ = shelf.add([UInt8](repeating: 1, count: 20), at: 0, of: 50, key(name, "b", "eve"))
        }
        #expect(shelf.answer(slow)?.bytes.count == 40)
    }

    @Test("count for the user, whatever tokens they come by")
    func tokensOfOneUser() {
        let shelf = UploadShelf(limit: 100)
        let whole = [UInt8](repeating: 1, count: 30)
        #expect(shelf.add(whole, at: 0, of: 31, key).received == 30)
        for token in 0..<6 {
            let many = UploadShelf.Key(token: "\(token)", name: "n", party: "eve")
            #expect(shelf.add(Array(whole.prefix(20)), at: 0, of: 30, many).received == 20)
        }
        #expect(shelf.add([2], at: 30, of: 31, key).whole == whole + [2])
    }

    @Test("and the answers to them have the same room")
    func answersHaveRoom() {
        let shelf = UploadShelf(limit: 10)
        let other = UploadShelf.Key(token: "u", name: "n")
        #expect(shelf.add([1, 2, 3], at: 0, of: 4, key).received == 3)
        #expect(shelf.add([1, 2], at: 0, of: 2, other).whole == [1, 2])
        let answer = UploadShelf.Answer(
            status: 200, isGzip: false, bytes: [UInt8](repeating: 1, count: 6))
        shelf.keep(answer, other)
        #expect(shelf.answer(other)?.bytes == nil)
        #expect(shelf.add([4], at: 3, of: 4, key).whole == [1, 2, 3, 4])
    }
}

import Testing

@Suite("The answer book")
struct AnswerBookTests {
    @Test("says when a storage answers otherwise than another, and only then")
    func differences() {
        let book = AnswerBook()
        #expect(book.difference(of: "a", to: 1, of: .memory) == nil)
        #expect(book.difference(of: "a", to: 1, of: .file) == nil)
        #expect(book.comparisons == 1)
        #expect(book.difference(of: "b", to: 2, of: .memory) == nil)
        #expect(book.comparisons == 1, "an answer to something else is compared with nothing")
        let difference = book.difference(of: "b", to: 1, of: .postgres)
        #expect(
            difference == "postgres answers otherwise than memory:\nb\nand\na",
            "what differs is said, with both answers")
        #expect(book.comparisons == 2)
    }
}

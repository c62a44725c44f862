import Testing

@Suite("The floors of a target")
struct FloorsTests {
    private static let order = ["Values", "Session", "Pool"]
    private static let above = SourceFile(
        path: "Sources/A/Pool/Queue.swift",
        text: """
            final class Queue { struct Inner {} }
            private struct Hidden {}
            typealias Work = () -> Void
            """)

    private func count(_ code: String, at path: String = "Sources/A/Session/B.swift") -> Int {
        let file = SourceFile(path: path, text: code)
        return Floors(Self.order, files: [Self.above, file]).violations(in: file).count
    }

    @Test(
        "a type of a folder above is refused, wherever the name stands",
        arguments: [
            "let a: Queue", "func f(_ a: [Queue]) {}", "extension Queue { func f() {} }",
            "let a = Queue()", "let a: Work?", "final class B: Queue {}",
            "let a = Dictionary<String, Queue>()", "let a = Queue.Inner()",
        ])
    func above(code: String) {
        #expect(count(code) == 1)
        #expect(count(code, at: "Sources/A/Pool/B.swift") == 0)
        #expect(count(code, at: "Sources/A/B.swift") == 0)
    }

    @Test(
        "what only looks like it is not",
        arguments: [
            "// Queue", "let a = \"Queue\"", "let a: Other.Queue", "let a: Hidden", "let a: Inner",
            "func f<Queue: P>(_ a: Queue) {}", "struct B<Queue> { let a: Queue }",
            "enum B { enum Queue {}; let a: Queue }",
        ])
    func own(code: String) {
        #expect(count(code) == 0)
    }

    @Test("a folder above that names one below is in order")
    func below() {
        let low = SourceFile(path: "Sources/A/Values/V.swift", text: "struct V {}")
        let floors = Floors(Self.order, files: [low])
        let high = SourceFile(path: "Sources/A/Pool/B.swift", text: "let a: V")
        #expect(floors.violations(in: high).isEmpty)
    }

    @Test("the orders are read from the table, and must name each folder once")
    func orders() {
        let page = """
            | target | folders |
            | --- | --- |
            | `A` | Values, Session, Pool |
            """
        let orders = Floors.orders(page)
        #expect(orders["A"] == Self.order)
        let files = ["Values", "Session", "Pool"].map {
            SourceFile(path: "Sources/A/\($0)/F.swift", text: "")
        }
        #expect(Floors.faults(files, orders).isEmpty)
        #expect(Floors.faults(files, [:]) == ["no order for the folders of A"])
        #expect(Floors.faults(files, ["A": ["Values", "Session"]]) == ["A/Pool has no place"])
        #expect(Floors.faults(files, ["A": Self.order + ["X"]]) == ["A/X is not there"])
        #expect(Floors.faults(files, ["A": Self.order + ["Pool"]]) == ["A names a folder twice"])
    }
}

import Synchronization
import SystemKit
import Testing

@Suite("Calls that block")
struct CallQueueTests {
    private struct Refusal: Error, Equatable {
        var number: Int
    }

    @Test("are made one at a time, and give what they give")
    func orderOfCalls() async {
        let calls = CallQueue(label: "calls")
        let made = Made()
        await withTaskGroup { group in
            for number in 0..<50 {
                group.addTask {
                    #expect(await calls.run { made.note(number) } == [number])
                }
            }
        }
        #expect(made.all.sorted() == Array(0..<50))
        #expect(made.most == 1)
    }

    @Test("throw what they throw")
    func failure() async {
        let calls = CallQueue(label: "calls")
        let error = await #expect(throws: Refusal.self) {
            try await calls.run { () throws(Refusal) -> Int in throw Refusal(number: 7) }
        }
        #expect(error == Refusal(number: 7))
    }

    /// What was called, and how many calls were under way at most.
    private final class Made: Sendable {
        private let state = Mutex((all: [Int](), now: 0, most: 0))

        var all: [Int] { state.withLock(\.all) }
        var most: Int { state.withLock(\.most) }

        func note(_ number: Int) -> [Int] {
            state.withLock { state in
                state.now += 1
                state.most = max(state.most, state.now)
                state.all.append(number)
            }
            defer { state.withLock { $0.now -= 1 } }
            return [number]
        }
    }
}

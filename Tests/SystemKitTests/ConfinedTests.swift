import Dispatch
import SystemKit
import Testing

@Suite("A value on a queue of its own")
struct ConfinedTests {
    @Test("is used at once where nobody uses it, and never by two")
    func atOnce() async throws {
        let confined = try await Confined.making(label: "test") { 1 }
        #expect(try confined.atOnce { value in value += 1 } != nil)
        #expect(try await confined.run { $0 } == 2)
        let (entered, leave) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        async let slow: Void = confined.run { _ in
            entered.signal()
            leave.wait()
        }
        await blocking { entered.wait() }
        #expect(try confined.atOnce { $0 } == nil)
        leave.signal()
        try await slow
        #expect(try confined.atOnce { $0 } == 2)
        // Who comes by the queue waits for who came at once.
        async let later = confined.run { $0 }
        #expect(try await later == 2)
        await confined.end()
        #expect(throws: OwnerStopped.self) { try confined.atOnce { $0 } }
    }

    @Test("counts right, whichever way it is used")
    func mixed() async throws {
        let confined = try await Confined.making(label: "test") { 0 }
        let counted = try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<8 {
                group.addTask {
                    var counted = 0
                    for step in 0..<200 {
                        if step % 3 == 0 {
                            try await confined.run { $0 += 1 }
                            counted += 1
                        } else if try confined.atOnce({ $0 += 1 }) != nil {
                            counted += 1
                        }
                    }
                    return counted
                }
            }
            return try await group.reduce(0, +)
        }
        #expect(try await confined.run { $0 } == counted)
    }

    private func blocking(_ body: @escaping @Sendable () -> Void) async {
        await withCheckedContinuation { continuation in
            DispatchQueue.global().async {
                body()
                continuation.resume()
            }
        }
    }
}

// A data race, which Thread Sanitizer must find. Nothing orders the two threads, so it is found even if
// one ends before the other begins.
import Foundation

// Nothing protects the value: this is the race.
final class Count: @unchecked Sendable {
    var value = 0
}
let count = Count()
let ended = DispatchSemaphore(value: 0)
for _ in 0..<2 {
    Thread.detachNewThread {
        for _ in 0..<1_000 { count.value += 1 }
        ended.signal()
    }
}
ended.wait()
ended.wait()

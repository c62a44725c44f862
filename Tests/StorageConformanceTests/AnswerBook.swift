import Foundation
import Synchronization
import Testing

/// What storages answered, kept for the whole run: whoever asks the same of the same data set must
/// hear the same.
final class AnswerBook: Sendable {
    static let shared = AnswerBook()

    private struct Page: Hashable {
        let test: String
        /// A hash of all that was asked of the data set, this request included.
        let asked: Int
    }

    private let answers = Mutex<[Page: (answer: String, kind: StorageKind)]>([:])
    private let compared = Mutex(0)

    /// Answers that were compared with another storage's.
    var comparisons: Int { compared.withLock { $0 } }

    /// Expects that other storages have answered the same.
    /// - Parameter asked: A hash of all that was asked.
    /// - Returns: Whether none answered otherwise.
    @discardableResult
    func enter(_ answer: String, to asked: Int, of kind: StorageKind) -> Bool {
        guard let difference = difference(of: answer, to: asked, of: kind) else { return true }
        Issue.record("\(difference)")
        return false
    }

    /// Enters an answer.
    /// - Returns: In words, how another storage's answer differs; nil where none does.
    func difference(of answer: String, to asked: Int, of kind: StorageKind) -> String? {
        guard let test = Test.current else { return nil }
        let page = Page(test: "\(test.id)", asked: asked)
        let other = answers.withLock { answers in
            let other = answers[page]
            if other == nil { answers[page] = (answer, kind) }
            return other
        }
        guard let other, other.kind != kind else { return nil }
        compared.withLock { $0 += 1 }
        guard other.answer != answer else { return nil }
        let same = answer.commonPrefix(with: other.answer).count
        func excerpt(_ text: String) -> Substring {
            text.dropFirst(max(0, same - 400)).prefix(1_000)
        }
        return """
            \(kind.rawValue) answers otherwise than \(other.kind.rawValue):
            \(excerpt(answer))
            and
            \(excerpt(other.answer))
            """
    }
}

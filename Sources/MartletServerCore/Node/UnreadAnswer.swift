import MartletModel
import MartletProtocol

/// The node's result for a request: its answer, or one that a reader of the log has to finish.
package enum NodeAnswer: Sendable {
    case made(PreparedAnswer)
    case unread(UnreadAnswer)
}

/// The answer to a request that has been decided and committed. It lacks entries for its device,
/// because they are not in memory.
package struct UnreadAnswer: Sendable {
    private let query: AnswerBuilder.Query
    private let accepted: Int
    private let repeated: Int
    private let refused: [RefusalReason: Int]

    init(query: AnswerBuilder.Query, work: RequestWork) {
        self.query = query
        accepted = work.acceptedCount
        repeated = work.repeats.count
        refused = work.refusals.reduce(into: [:]) { $0[$1.reason, default: 0] += 1 }
    }

    func make(with builder: AnswerBuilder) throws(AnswerBuilder.Failure) -> PreparedAnswer {
        var answer = try builder.answer(to: query)
        answer.accepted = accepted
        answer.repeated = repeated
        answer.refused = refused
        return answer
    }

    /// Returns the whole answer, from a builder that has the log.
    func answer(from builder: AnswerBuilder) -> Result<PreparedAnswer, Problem> {
        do throws(AnswerBuilder.Failure) {
            return .success(try make(with: builder))
        } catch {
            return .failure(error.problem)
        }
    }
}

extension AnswerBuilder.Failure {
    /// The problem for the device.
    var problem: Problem {
        guard case .fault(let fault) = self else {
            return RequestCheck.problem(for: StorageFault(.failed, "no way to answer"))
        }
        return RequestCheck.problem(for: fault)
    }
}

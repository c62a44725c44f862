import MartletModel
import MartletProtocol

/// The readers of `POST /sync`, on both sides: what is read can be written, and reads back as the
/// same; limits hold; a set with a defect holds no change.
enum WireTarget: FuzzTarget {
    static let name = "wire"

    static func check(_ input: [UInt8]) throws {
        if let request = try? SyncCoder.decodeRequest(input) {
            try hold(
                request.changeSets.count <= Limits.changeSetsPerRequest, "no more sets than allowed"
            )
            if try isSound(request.changeSets) {
                let again = try SyncCoder.decodeRequest(try SyncCoder.encode(request))
                try hold(again == request, "a request is the same when written and read again")
            }
        }
        if let answer = try? SyncCoder.decodeAnswer(input), try isSound(answer.changeSets) {
            let again = try SyncCoder.decodeAnswer(try SyncCoder.encode(answer))
            try hold(again == answer, "an answer is the same when written and read again")
        }
        if let attributes = try? SyncCoder.decodeAttributes(input) {
            let again = try SyncCoder.decodeAttributes(try SyncCoder.encode(attributes))
            try hold(again == attributes, "attributes are the same when written and read again")
        }
        let problem = SyncCoder.decodeProblem(input, status: 500)
        try hold(
            SyncCoder.decodeProblem(SyncCoder.encode(problem), status: 500) == problem,
            "a problem is the same when written and read again")
    }

    private static func isSound(_ sets: [ChangeSet]) throws -> Bool {
        for set in sets where set.defect != nil {
            try hold(set.types.isEmpty, "a set with a defect has no changes")
        }
        return sets.allSatisfy { $0.defect == nil }
    }
}

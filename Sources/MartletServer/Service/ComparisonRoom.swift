internal import Synchronization

/// Limits the comparisons that may wait or run. Each one reads much, and no device needs many.
final class ComparisonRoom: Sendable {
    /// The most comparisons of all users together.
    static let most = 64
    /// The most comparisons of one user. Several devices may share a user's token.
    static let mostOfUser = 16

    private struct Device: Hashable {
        let user: String
        let name: String
    }

    private struct State {
        var devices: Set<Device> = []
        var byUser: [String: Int] = [:]
    }

    private let state = Mutex(State())

    /// The number of comparisons that wait or run.
    var count: Int { state.withLock { $0.devices.count } }

    /// Runs `body` if there is room and no other comparison of the same device.
    ///
    /// - Parameter name: The device's name. All requests of a user without one count as one
    ///   device's.
    /// - Returns: The answer, or nil if there is no room.
    func run<Answer>(
        user: String, device name: String, _ body: () async -> Answer
    ) async -> Answer? {
        let device = Device(user: user, name: name)
        let hasRoom = state.withLock { state in
            let ofUser = state.byUser[user, default: 0]
            guard state.devices.count < Self.most, ofUser < Self.mostOfUser,
                state.devices.insert(device).inserted
            else { return false }
            state.byUser[user] = ofUser + 1
            return true
        }
        guard hasRoom else { return nil }
        let answer = await body()
        state.withLock { state in
            state.devices.remove(device)
            let left = state.byUser[user, default: 1] - 1
            state.byUser[user] = left > 0 ? left : nil
        }
        return answer
    }
}

/// Stops the device between two transactions.
extension DeviceNode {
    /// Ends the current work and plans nothing more, until the device is started or a person wakes
    /// it.
    ///
    /// An answer that has not arrived counts as lost, and so does the rest of one that is being
    /// applied. The next exchange asks for it again.
    package func stop() -> [Action] {
        options.pollInterval = nil
        options.isLive = false
        switch state {
        case .exchanging, .applying: endLease()
        // The download continues later from where it was cut.
        case .fetchingSnapshot: hasAskedForSnapshot = false
        case .idle, .pausing, .halted: break
        }
        if case .halted = state {} else { state = .idle }
        parts = .none
        probe = nil
        hasProbed = false
        isWoken = false
        isTidying = false
        unanswered = []
        return closeStream()
    }
}

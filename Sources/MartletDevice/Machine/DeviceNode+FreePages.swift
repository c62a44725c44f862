/// Returns free pages of the file to the disk while the device is idle.
extension DeviceNode {
    /// Starts returning free pages if there is nothing else to do.
    func beginTidying() -> [Action] {
        isTidying = true
        return [.tidy]
    }

    /// Returns some free pages. The user's writes go first between two steps.
    func tidy() -> [Action] {
        guard isTidying else { return [] }
        isTidying = false
        switch state {
        case .idle, .pausing: break
        // When the current work ends, it starts this again.
        case .exchanging, .applying, .fetchingSnapshot, .halted: return []
        }
        // A failure does no harm: the pages are used again, or returned another time.
        let goesOn = try? store.giveBackPages(
            most: options.pagesOfStep, keeping: options.freePages)
        return goesOn == true ? beginTidying() : []
    }
}

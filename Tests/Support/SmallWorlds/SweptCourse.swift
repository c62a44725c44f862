internal import Martlet
internal import MartletDevice
internal import MartletServerCore
internal import MartletStore
internal import SQLiteFaults
internal import SQLiteKit

/// What a piece of work does where nothing fails: what every run of it is held against.
package struct SweptCourse {
    /// Operations of the disk, those of closing among them.
    package private(set) var operations = 0
    /// Reads of the disk.
    package private(set) var reads = 0
    /// What the file holds after each transaction, from the beginning on.
    package private(set) var states: [String] = []
    /// The state at each moment, by its index in `states`. One that was left may come back, as where
    /// what has been done is done once more.
    private var moments: [Int] = []
    /// The moment of each word that something is done.
    private var acknowledged: [Int] = []
    /// What `SweptWork.check` gives in the end.
    package private(set) var end = ""

    /// Does the work once, and writes down how it goes.
    /// - Parameter images: What is on the disks before.
    package init(of scenario: SweptScenario, from images: DiskImages, life: Int) throws {
        let work = try scenario.make(images, life)
        let disk = work.disk
        let (before, readsBefore) = (disk.operationCount, disk.readCount)
        var moments = [disk.files]
        var words: [Int] = []
        disk.watcher = { [unowned disk] in moments.append(disk.files) }
        work.whenAcknowledged = {
            moments.append(disk.files)
            words.append(moments.count - 1)
        }
        try work.act()
        work.close(life: life + 1)
        disk.watcher = nil
        work.whenAcknowledged = {}
        moments.append(disk.files)
        operations = disk.operationCount - before
        reads = disk.readCount - readsBefore
        for files in moments {
            let state = try work.state(on: FaultDisk("moment", files))
            let known = states.lastIndex(of: state)
            if known == nil { states.append(state) }
            self.moments.append(known ?? states.count - 1)
        }
        acknowledged = words
        end = try work.check()
        work.close(life: life + 1)
    }

    /// Tries to do the work, or what is left of it.
    /// - Returns: What it failed of; nil where it was done.
    /// - Throws: `SweepFailure` where it fails of something without a type of ours.
    package static func attempt(_ work: any SweptWork) throws -> (any Error)? {
        do {
            try work.act()
            return nil
        } catch let failure as SweepFailure {
            throw failure
        } catch {
            let isTyped =
                error is StoreError || error is SyncError || error is StorageFault
                || error is SQLiteError
            guard isTyped else { throw SweepFailure("no error of ours: \(error)") }
            return error
        }
    }

    /// Looks at the file as a process would find it that starts now: it is whole, and shows a state
    /// between two transactions, none from before the last word that something is done.
    /// - Parameter count: How many such words there were.
    /// - Throws: `SweepFailure`.
    package func look(at work: any SweptWork, acknowledged count: Int) throws {
        let state = try work.state(on: FaultDisk("look", work.disk.files))
        let first = count > 0 ? acknowledged[min(count, acknowledged.count) - 1] : 0
        guard !moments[first...].contains(where: { states[$0] == state }) else { return }
        guard let known = states.firstIndex(of: state) else {
            throw SweepFailure("a state between two:\n\(difference(of: state))")
        }
        throw SweepFailure("the state \(known) of \(states.count), but \(count) words were given")
    }

    /// Looks at the file after a failed operation, of which the work has heard.
    ///
    /// It may have gone on before it said so, and been about another transaction when it told of the
    /// last one.
    package func lookAfterFailure(at work: any SweptWork) throws {
        if work.hasDetours {
            _ = try work.state(on: FaultDisk("look", work.disk.files))
        } else {
            try look(at: work, acknowledged: max(0, work.acknowledged - 1))
        }
    }

    /// Lets the work go on to its end, now that nothing fails.
    /// - Throws: `SweepFailure` where it ends otherwise; what it fails of.
    package func finish(_ work: any SweptWork) throws {
        try work.act()
        let end = try work.check()
        guard end == self.end else {
            throw SweepFailure("it ends otherwise:\n\(end)\ninstead of\n\(self.end)")
        }
        work.close(life: 3)
        _ = try work.state(on: work.disk)
    }

    /// The lines in which a state differs from the one most like it.
    private func difference(of state: String) -> String {
        let lines = Set(state.split(separator: "\n"))
        let nearest = states.map { Set($0.split(separator: "\n")).symmetricDifference(lines) }
            .min { $0.count < $1.count }
        return (nearest ?? []).sorted().prefix(12).joined(separator: "\n")
    }
}

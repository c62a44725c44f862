internal import MartletStore
internal import SQLiteFaults
internal import SQLiteKit

/// A failure that a disk will have at an operation soon, and whether it has happened.
struct ArmedFailure {
    let kind: FaultDisk.Failure
    /// The disk's count of operations at which the failure happens.
    let operation: Int
}

extension Simulator {
    /// Sometimes makes a file operation of the near future fail.
    func maybeBreak(_ disk: FaultDisk) {
        armed = nil
        let roll = random.below(1_000)
        if roll < faults.diskCrashes {
            disk.failAfter(operations: 1 + random.below(40), kind: .crash)
        } else if roll < faults.diskCrashes + faults.diskErrors {
            report.diskErrors += 1
            let operations = 1 + random.below(40)
            let kind: FaultDisk.Failure = random.chance(50) ? .ioError : .full
            disk.failAfter(operations: operations, kind: kind, lasting: random.chance(30))
            armed = ArmedFailure(kind: kind, operation: disk.operationCount + operations)
        }
    }

    /// Cancels the failure, and counts it if it has happened.
    func mend(_ disk: FaultDisk) {
        if let armed, disk.operationCount >= armed.operation {
            report.happened(armed.kind == .full ? .diskFull : .diskError)
        }
        armed = nil
        if !disk.isDown { disk.heal() }
    }

    /// Returns SQLite's code of an error that a failing disk can cause; nil for any other error.
    static func diskCode(of error: any Error) -> Int32? {
        if let error = error as? SQLiteError { return error.code }
        guard let error = error as? StoreError, error.constraint == nil else { return nil }
        return error.code.map { $0 & 0xff }
    }
}

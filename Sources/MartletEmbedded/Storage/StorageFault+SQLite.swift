public import MartletServerCore
public import SQLiteKit

extension StorageFault {
    /// What SQLite reported.
    public init(_ error: SQLiteError) {
        let kind: Kind = error.isBusy ? .busy : error.isDiskFull ? .full : .failed
        self.init(kind, error.description)
    }
}

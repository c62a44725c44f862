package import MartletServerCore
package import SQLiteKit

extension StorageFault {
    /// Makes the fault for an error of SQLite.
    package init(_ error: SQLiteError) {
        let kind: Kind = error.isBusy ? .busy : error.isDiskFull ? .full : .failed
        let remedy = kind == .full ? "; make room on the disk of the data set's file" : ""
        self.init(kind, error.description + remedy)
    }
}

internal import Foundation
internal import MartletModel

/// The traces of a data set whose file is missing: of a restore whose process was killed, or of a
/// file that was removed.
struct UnfinishedRestore {
    private let directory: String
    private let dataSet: String

    init(of dataSet: String, in directory: String) {
        self.dataSet = dataSet
        self.directory = directory
    }

    /// Returns the data sets that have files in the folder under other names only.
    static func dataSets(in directory: String) throws -> [String] {
        let names = try FileManager.default.contentsOfDirectory(atPath: directory)
        var found: Set<String> = []
        for name in names {
            guard let range = name.range(of: ".sqlite.") ?? name.range(of: ".sqlite-wal")
            else { continue }
            let dataSet = String(name[..<range.lowerBound])
            if DataSetName.isValid(dataSet),
                UnfinishedRestore(of: dataSet, in: directory).problem != nil
            {
                found.insert(dataSet)
            }
        }
        return found.sorted()
    }

    private var fileName: String { dataSet + ".sqlite" }
    private var path: String { "\(directory)/\(fileName)" }

    private func names(_ prefix: String) -> [String] {
        let all = (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
        return all.filter { $0.hasPrefix(fileName + prefix) && !$0.hasSuffix("-wal") }.sorted()
    }

    /// Advice for a restore that found the data set without its file; nil if the data set has its
    /// file, or has no other file either.
    var problem: (what: String, fix: String)? {
        guard !FileManager.default.fileExists(atPath: path) else { return nil }
        if let kept = names(".before-").last {
            return (
                """
                The data set “\(dataSet)” has no file “\(path)”, but there is “\(kept)”: a restore \
                of it was not finished.
                """,
                """
                Restore the backup again; or go back to what was there: \
                mv '\(directory)/\(kept)' '\(path)'
                """
            )
        }
        guard let unfinished = names(".restoring").first else { return loss }
        return (
            """
            The data set “\(dataSet)” has no file “\(path)”, but there is “\(unfinished)”: a restore of it \
            was not finished.
            """,
            """
            Restore the backup again; or remove that file, and an empty data set is made.
            """
        )
    }

    /// Advice about a file that was removed; nil if nothing is left of it. A folder of snapshots
    /// counts if it is not empty: a server also makes the folder for a new data set, and a server
    /// on PostgreSQL fills one.
    private var loss: (what: String, fix: String)? {
        let files = FileManager.default
        let snapshots = "\(directory)/snapshots/\(dataSet)"
        let hasSnapshots = (try? files.contentsOfDirectory(atPath: snapshots))?.isEmpty == false
        guard
            let trace = files.fileExists(atPath: path + "-wal")
                ? path + "-wal" : hasSnapshots ? snapshots : nil
        else { return nil }
        return (
            """
            The data set “\(dataSet)” has no file “\(path)”, but there is “\(trace)”: its file was \
            removed or moved.
            """,
            """
            Put the file back, or restore a backup; or remove “\(trace)”, and an empty data set is made.
            """
        )
    }

    /// Refuses to create an empty data set in place of one that was being restored or lost. It also
    /// leaves the existing file with one name only, because SQLite must not open a file under two.
    ///
    /// The caller must have the folder to itself.
    ///
    /// - Throws: `ServerFailure`, which says what to do.
    func check() throws {
        if let problem { throw ServerFailure("\(problem.what) \(problem.fix)") }
        guard let number = number(path) else { return }
        for name in names(".before-") where self.number("\(directory)/\(name)") == number {
            try FileManager.default.removeItem(atPath: "\(directory)/\(name)")
        }
    }

    /// Returns the number of a file, which all its names share; nil if there is no file.
    private func number(_ path: String) -> UInt64? {
        let facts = try? FileManager.default.attributesOfItem(atPath: path)
        return (facts?[.systemFileNumber] as? NSNumber)?.uint64Value
    }
}

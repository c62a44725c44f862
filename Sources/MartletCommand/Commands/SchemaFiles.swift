import Foundation
import MartletTransfer

/// The sources of a command's schema.
enum SchemaFiles {
    /// Returns the text of a schema file.
    /// - Throws: `CommandError` with `code` if it cannot be read.
    static func read(_ path: String, code: ExitCode = .failed) throws -> String {
        guard !path.isEmpty else {
            throw CommandError(
                "The name of a file is empty. Is a variable of the shell not set?", code: .usage)
        }
        switch kind(of: path) {
        case nil: throw CommandError("The file \(path) cannot be read: there is none.", code: code)
        case .typeDirectory?:
            throw CommandError(
                "The file \(path) cannot be read: it is a folder. Name a file in it.", code: code)
        default: break
        }
        do {
            return try String(contentsOfFile: path, encoding: .utf8)
        } catch {
            throw CommandError(
                "The file \(path) cannot be read; it should be SQL in UTF-8.", code: code)
        }
    }

    /// Returns what a path names, behind symbolic links; nil if there is nothing.
    static func kind(of path: String) -> FileAttributeType? {
        let file = URL(fileURLWithPath: path).resolvingSymlinksInPath().path
        let attributes = try? FileManager.default.attributesOfItem(atPath: file)
        return attributes?[.type] as? FileAttributeType
    }

    /// Returns the schema for CSV files: the given one, or `schema.sql` in their folder, or one
    /// that is inferred from them.
    static func forFiles(
        _ paths: [String], given: String?, console: Console
    ) throws -> String {
        if let given { return try read(given) }
        for path in paths {
            let beside = URL(fileURLWithPath: path).appendingPathComponent("schema.sql").path
            if FileManager.default.fileExists(atPath: beside) { return try read(beside) }
        }
        let inference = try SchemaInference(try CSVFile.find(paths))
        console.note("No schema was given; this one was found out from the files:")
        for note in inference.notes { console.note("  " + note) }
        console.note("`martlet schema FOLDER` prints it, to be corrected and given with --schema.")
        return inference.script
    }
}

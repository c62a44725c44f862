import Foundation
import Martlet
import MartletDemo
import MartletDevice
import MartletPostgres
import MartletServer
import MartletServerCore
import MartletStore
import MartletTransfer
import PostgresKit
import SQLiteKit

/// The message and the exit status for an error.
struct FailureReport {
    let sentence: String
    let code: ExitCode

    /// - Parameter command: The command that failed, if it is known.
    init(_ error: any Error, of command: String? = nil) {
        switch error {
        case let error as UsageError: self.init(error.description, .usage)
        case let error as CommandError: self.init(error.message, error.code)
        case let error as SyncError:
            self.init(
                "\(Self.whole(error.message)) \(Self.advice(error.remedy))",
                error.remedy == .wait ? .unreachable : .failed)
        case let error as SQLiteError:
            self.init("The file cannot be used: \(error.message). \(Self.advice(error))", .failed)
        case let fault as StorageFault:
            self.init("The data set cannot be used: \(fault). \(Self.advice(fault))", .failed)
        case let error as AdoptionError:
            // Other commands only read.
            let start = command?.hasPrefix("postgres ") == true ? ["Nothing was changed."] : []
            let problems = error.problems.map { problem in
                start.isEmpty && error.problems.count == 1 ? "\(problem)." : "- \(problem)."
            }
            self.init((start + problems).joined(separator: "\n"), .failed)
        case let error as PostgresError:
            self.init(
                "PostgreSQL: \(error.message). \(error.remedy)",
                error.endsConnection && error.kind != .malformedAddress ? .unreachable : .failed)
        case let error as CocoaError: self.init(Self.sentence(error), .failed)
        default: self.init(String(describing: error), .failed)
        }
    }

    private init(_ sentence: String, _ code: ExitCode) {
        self.sentence = sentence.trimmingCharacters(in: .whitespacesAndNewlines)
        self.code = code
    }

    /// Returns the text of a server's problem as a complete sentence.
    private static func whole(_ text: String) -> String {
        text.last.map { ".!?:".contains($0) } ?? true ? text : text + "."
    }

    /// Returns a sentence for a Foundation error, because Foundation's own text names neither the
    /// file nor the reason.
    private static func sentence(_ error: CocoaError) -> String {
        let path = error.filePath.map { "“\($0)”" } ?? "A file"
        return """
            \(path) cannot be read or written. See that its disk has room and is sound, and that you may \
            write there; then run it again.
            """
    }

    private static func advice(_ remedy: SyncError.Remedy) -> String {
        switch remedy {
        case .wait: "Nothing is lost; run the command again later."
        case .checkServer: "Then run the command again."
        case .signIn: "Give a valid token with --token-file, --token or MARTLET_TOKEN."
        case .upgrade: "Install a newer martlet."
        case .decide: "Nothing was changed; the device's own work stays in the file."
        case .checkStorage: "See that the disk has space and is sound, then run it again."
        case .report: ""
        }
    }

    private static func advice(_ fault: StorageFault) -> String {
        switch fault.kind {
        case .busy: "Another program is writing to it; try again when it is done."
        case .full: "Free some space and run it again; nothing is half done."
        case .moved: ""
        case .changed, .failed, .refused, .rolledBack, .unreachable:
            "Check your rights to its file and its folder, and that the disk can be written to."
        }
    }

    private static func advice(_ error: SQLiteError) -> String {
        if error.isBusy { return "Another program is writing to it; try again when it is done." }
        if error.isReadOnly { return "Get the right to write to it and to its folder." }
        if error.isDiskFull { return "Free some space and run it again; nothing is half done." }
        if error.isCannotOpen {
            return """
                Check its path, that its folder is there, your rights to both, and that the disk can be \
                written to.
                """
        }
        if error.isCorrupt { return "It is no SQLite file, or it is damaged; keep a copy of it." }
        return ""
    }
}

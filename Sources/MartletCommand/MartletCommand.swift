import Foundation
import SQLiteKit

/// The program `martlet`.
@main
enum MartletCommand {
    static func main() async {
        SQLiteProcess.countNoMemory()
        let code = await run(Array(CommandLine.arguments.dropFirst()), console: .standard)
        exit(code.rawValue)
    }

    /// Runs one command line; errors become a sentence and an exit code.
    static func run(_ words: [String], console: Console) async -> ExitCode {
        var name: String?
        do {
            switch try ArgumentParser(commands: CommandDescription.all).parse(words) {
            case .overview:
                console.print(HelpText.overview(CommandDescription.all))
                return .done
            case .version:
                console.print("martlet \(Release.version), wire protocol \(Release.wire)")
                return .done
            case .help(let command):
                console.print(HelpText.page(command))
                return .done
            case .run(let command, let arguments):
                name = command.name
                return try await command.run(arguments, console)
            }
        } catch {
            let failure = FailureReport(error, of: name)
            if words.prefix(while: { $0 != "--" }).contains("--json") {
                console.print(
                    JSONText.object([("ok", .boolean(false)), ("error", .text(failure.sentence))])
                        .description)
            }
            console.note("martlet: \(failure.sentence)")
            return failure.code
        }
    }
}

import Foundation
import Martlet
import MartletStore
import YouthSports

/// The program `youth`.
@main
enum YouthCommand {
    static let commands: [Command] =
        Command.teams + Command.players + Command.screenings + Command.watching + Command.exchange

    static func main() async {
        exit(await run(Array(CommandLine.arguments.dropFirst())).rawValue)
    }

    /// Runs one command line; errors become a sentence and an exit code.
    static func run(_ words: [String]) async -> ExitCode {
        guard let name = words.first, !["help", "--help", "-h"].contains(name) else {
            Terminal.print(HelpText.overview(commands))
            return words.isEmpty ? .usage : .done
        }
        do {
            guard let command = commands.first(where: { $0.name == name }) else {
                throw UsageError("There is no command “\(name)”; “youth help” lists them.")
            }
            let arguments = try Arguments(words.dropFirst(), command: command)
            guard !arguments.isHelp else {
                Terminal.print(HelpText.page(command))
                return .done
            }
            return try await run(arguments)
        } catch {
            Terminal.note("youth: \(error)")
            return switch error {
            case is UsageError: .usage
            case let error as SyncError where error.kind == .offline: .offline
            default: .refused
            }
        }
    }

    private static func run(_ arguments: Arguments) async throws -> ExitCode {
        let server = try arguments.value("server").map { address in
            guard let url = URL(string: address), url.host() != nil else {
                throw UsageError("--server is an address such as https://sync.example.org.")
            }
            return url
        }
        let state = try await LocalState(folder: arguments.value("data") ?? "youth-data")
        let organisation = try await Organisation.open(
            path: state.database, server: server,
            token: try await state.secrets.text(for: LocalState.token))
        let session = Session(
            arguments: arguments, organisation: organisation, state: state,
            hasServer: server != nil)
        do {
            let code = try await arguments.command.run(session)
            await organisation.close()
            return code
        } catch {
            await organisation.close()
            throw error
        }
    }
}

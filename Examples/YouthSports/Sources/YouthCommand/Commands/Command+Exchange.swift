import Foundation
import Martlet

extension Command {
    /// What keeps this device in step.
    static let exchange: [Command] = [
        Command(
            name: "login", summary: "Keep the token for the server, read from standard input."
        ) { session in
            var lines = Terminal.lines().makeAsyncIterator()
            guard let token = await lines.next()?.trimmingCharacters(in: .whitespaces),
                !token.isEmpty
            else { throw UsageError("A token was expected on standard input.") }
            try await session.state.secrets.set(token, for: LocalState.token)
            return .done
        },
        Command(name: "logout", summary: "Forget the token for the server.") { session in
            try await session.state.secrets.remove(LocalState.token)
            return .done
        },
        Command(name: "sync", summary: "Exchange with the server.") { session in
            guard session.hasServer else { throw UsageError("“sync” needs --server URL.") }
            let revision = try await session.organisation.client.sync()
            Terminal.print("in step at revision \(revision)")
            return try await session.finish()
        },
        Command(name: "status", summary: "Show how this device stands.") { session in
            let status = try await session.organisation.client.status()
            Terminal.print(
                """
                revision \(status.revision)
                waiting to be sent \(status.outbox)
                waiting for a decision \(status.parked)
                """)
            return status.parked > 0 ? .conflicts : .done
        },
        Command(
            name: "conflicts", summary: "Show what was refused, and decide.",
            options: [
                Option(name: "retry", value: "SET", help: "make these edits again on what is now"),
                Option(name: "drop", value: "SET", help: "give these edits up"),
            ]
        ) { session in
            let client = session.organisation.client
            if let identifier = session.arguments.value("retry") {
                try await client.retry(identifier)
            }
            if let identifier = session.arguments.value("drop") {
                try await client.drop(identifier)
            }
            try await session.exchange()
            let parked = try await client.parked()
            for set in parked {
                Terminal.print("\(set.identifier)\t\(set.message)")
                for change in set.changes {
                    Terminal.print("\t\(change.operation.rawValue) \(change.type) \(change.id)")
                }
            }
            return parked.isEmpty ? .done : .conflicts
        },
    ]
}

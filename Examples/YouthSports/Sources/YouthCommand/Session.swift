import Foundation
import Martlet
import MartletStore
import YouthSports

/// One run of the program: what was asked, and what it is asked of.
struct Session: Sendable {
    let arguments: Arguments
    let organisation: Organisation
    let state: LocalState
    /// Whether a server was named.
    let hasServer: Bool

    /// Exchanges with the server, where one was named. A server out of reach is no failure: the
    /// data is here, and what was written waits.
    /// - Returns: Whether all is in step, or no server was named.
    @discardableResult
    func exchange() async throws -> Bool {
        guard hasServer else { return true }
        do {
            try await organisation.client.sync()
            if try await organisation.refusedNotes.converge() > 0 {
                try await organisation.client.sync()
            }
            return true
        } catch let error as SyncError where error.kind == .offline {
            Terminal.note("The server was not reached; what you do waits on this device.")
            return false
        }
    }

    /// How a run that wrote ends: exchanges, and says what waits for a decision.
    func finish() async throws -> ExitCode {
        try await exchange()
        let parked = try await organisation.client.status().parked
        guard parked > 0 else { return .done }
        Terminal.note("\(parked) of your changes met others' and wait: see “youth conflicts”.")
        return .conflicts
    }

    /// The team named by an operand, or the one used last.
    func team(at index: Int) async throws -> String {
        if let name = arguments.optionalOperand(index) { return name }
        guard let last = try await state.settings.value(.lastTeam) else {
            throw UsageError("No team was used before on this device; name one.")
        }
        return last
    }

    /// Takes note that a team was used.
    func used(_ team: String) async throws {
        try await state.settings.set(.lastTeam, to: team)
    }
}

import Foundation
import HTTPKit
import Martlet
import MartletDevice
import MartletModel
import Synchronization
import Testing

@Suite("Redirects", .timeLimit(.minutes(5)))
struct RedirectTests {
    @Test(
        "are not followed: nobody but the server the app named gets the token or an edit",
        arguments: [301, 302, 303, 307, 308])
    func refusedRedirect(status: Int) async throws {
        let elsewhere = Mutex(0)
        let thief = HTTPServer(options: HTTPServerOptions()) { _ in
            elsewhere.withLock { $0 += 1 }
            return HTTPResponse(status: 200, text: "{}")
        }
        let port = try await thief.start()
        let server = HTTPServer(options: HTTPServerOptions()) { request in
            let address = "http://127.0.0.1:\(port)\(request.path)"
            return HTTPResponse(status: status, headers: [HTTPField("Location", address)])
        }
        let url = try #require(URL(string: "http://127.0.0.1:\(try await server.start())/"))
        let transport = try URLSessionTransport(server: url, token: "secret")
        let answer = try await transport.exchange([UInt8]("{}".utf8))
        #expect(answer.status == status)
        await #expect(throws: SyncError.self) { _ = try await transport.schema() }
        await #expect(throws: TransportFailure.self) { _ = try await transport.manifest() }
        // A connection may fail at any time, and without a status; a listener asks anew then.
        var failures: [TransportFailure] = []
        repeat {
            let failure = await #expect(throws: TransportFailure.self) {
                try await transport.deltas(DeltaCursor(since: 0)) { _ in }
            }
            failures.append(try #require(failure))
        } while failures.last?.status == nil && failures.count < 3
        if failures.count > 1 { print("asked again after: \(failures)") }
        #expect(failures.last?.status == status, "\(failures)")
        #expect(elsewhere.withLock { $0 } == 0)
        await server.stop(grace: .zero)
        await thief.stop(grace: .zero)
    }

    @Test(
        "and plain http are refused where they leave this machine",
        arguments: [
            "http://sync.example.org", "http://127.0.0.1.example.org", "ftp://127.0.0.1", "sync",
            "http://localhost@sync.example.org", "HTTP://sync.example.org",
        ])
    func plain(address: String) throws {
        let url = try #require(URL(string: address))
        #expect(throws: SyncError.self) {
            _ = try URLSessionTransport(server: url, token: "secret")
        }
    }
}

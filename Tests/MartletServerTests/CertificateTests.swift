import Foundation
import SystemKit
import Testing
import Waiting

@testable import MartletServer

@Suite("A server's own certificate")
struct CertificateTests {
    private let folder = TemporaryFolder()
    private var certificate: String { folder.path + "/cert.pem" }
    private var key: String { folder.path + "/key.pem" }

    /// Runs OpenSSL's own client and tool.
    private func openssl(_ arguments: [String], input: String = "") async throws -> String {
        try await CallQueue(label: "openssl").run {
            let process = Process()
            process.executableURL = URL(fileURLWithPath: "/usr/bin/openssl")
            process.arguments = arguments
            let (stdin, stdout) = (Pipe(), Pipe())
            process.standardInput = stdin
            process.standardOutput = stdout
            process.standardError = FileHandle.nullDevice
            try process.run()
            try stdin.fileHandleForWriting.write(contentsOf: Data(input.utf8))
            let output = try stdout.fileHandleForReading.readToEnd() ?? Data()
            try stdin.fileHandleForWriting.close()
            process.waitUntilExit()
            return String(decoding: output, as: UTF8.self)
        }
    }

    /// Makes a self-signed certificate and its key: the server's own, or at paths that begin with
    /// `place`.
    private func make(_ name: String, days: Int, at place: String? = nil) async throws {
        try FileManager.default.createDirectory(
            atPath: folder.path, withIntermediateDirectories: true)
        _ = try await openssl([
            "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "\(days)", "-subj",
            "/CN=\(name)", "-keyout", place.map { $0 + "-key.pem" } ?? key, "-out",
            place.map { $0 + "-cert.pem" } ?? certificate,
        ])
    }

    private func get(_ path: String, _ live: LiveServer) async throws -> String {
        try await openssl(
            ["s_client", "-connect", "127.0.0.1:\(live.port)"],
            input: "GET \(path) HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
    }

    private func untilServed(_ name: String, _ live: LiveServer) async throws {
        try await waitUntil("the certificate “\(name)” is served") {
            try await get("/healthz", live).contains("CN = \(name)")
        }
    }

    @Test("is taken up anew when its files change; broken files leave the old one in use")
    func renewed() async throws {
        try await make("first", days: 100)
        let live = try await LiveServer {
            $0.tlsCertificatePath = certificate
            $0.tlsKeyPath = key
            $0.certificateEvery = .milliseconds(20)
        }
        try await untilServed("first", live)
        // A certificate without its key, as in the middle of a renewal. The pair is made elsewhere:
        // the server would take it up if it saw both files here before the old key is back.
        let second = folder.path + "/second"
        try await make("second", days: 10, at: second)
        try Data(contentsOf: URL(fileURLWithPath: second + "-cert.pem"))
            .write(to: URL(fileURLWithPath: certificate), options: .atomic)
        try await live.untilLogged("The server goes on with the certificate that it has.")
        try await untilServed("first", live)
        #expect(!live.logLines.contains { $0.contains("ends soon") })
        try Data(contentsOf: URL(fileURLWithPath: second + "-key.pem"))
            .write(to: URL(fileURLWithPath: key), options: .atomic)
        try await untilServed("second", live)
        try await live.untilLogged("ends soon")
        try await waitUntil("the metrics tell the end") {
            let text = try await get("/metrics", live)
            guard
                let line = text.split(separator: "\n").first(where: {
                    $0.hasPrefix("martlet_certificate_end_seconds ")
                }), let end = Double(line.split(separator: " ")[1])
            else { return false }
            let days = (end - Date.now.timeIntervalSince1970) / 86_400
            return (9...10).contains(days)
        }
        await live.stop()
    }

    @Test(
        "is warned of once a day, and when it ends",
        arguments: [
            (Int64(1_000), Int64?.none, true), (1_000, 999, false), (90_000, 3_600, true),
            (5_000, 4_999, true), (5_001, 5_000, false),
        ])
    func due(now: Int64, warned: Int64?, isDue: Bool) {
        #expect(CertificateWatch.isDue(at: now, warned: warned, end: 5_000) == isDue)
    }

    @Test("that has ended is told at the start")
    func ended() async throws {
        try await make("old", days: 100)
        let live = try await LiveServer {
            $0.tlsCertificatePath = certificate
            $0.tlsKeyPath = key
            $0.now = { Int64(Date.now.timeIntervalSince1970 * 1_000) + 101 * 86_400_000 }
        }
        try await live.untilLogged("The TLS certificate has ended")
        await live.stop()
    }
}

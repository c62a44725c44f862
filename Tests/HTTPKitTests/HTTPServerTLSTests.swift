import Foundation
import HTTPKit
import SocketTalk
import SystemKit
import Testing

@Suite("HTTP server with TLS")
struct HTTPServerTLSTests {
    /// Runs OpenSSL's own client and tool: another implementer's view of the server.
    private func openssl(_ arguments: [String], input: String = "") async throws -> String {
        try await CallQueue(label: "openssl").run { try Self.run(arguments, input: input) }
    }

    private static func run(_ arguments: [String], input: String) throws -> String {
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

    @Test("speaks TLS 1.2 and 1.3, and nothing older")
    func versions() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent(
            "martlet-tls-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let (certificate, key) = (folder.path + "/cert.pem", folder.path + "/key.pem")
        _ = try await openssl([
            "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
            "/CN=localhost", "-keyout", key, "-out", certificate,
        ])
        try await withServer {
            $0.tls = .init(certificatePath: certificate, keyPath: key)
        } _: { _, port in
            let request =
                "POST /t HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nConnection: close\r\n\r\nab"
            for version in ["-tls1_2", "-tls1_3"] {
                let answer = try await openssl(
                    ["s_client", "-quiet", version, "-connect", "127.0.0.1:\(port)"],
                    input: request)
                #expect(answer.contains("HTTP/1.1 200 OK"))
                #expect(answer.hasSuffix("POST /t 2\n"))
            }
            let old = try await openssl(
                [
                    "s_client", "-quiet", "-tls1_1", "-cipher", "DEFAULT@SECLEVEL=0", "-connect",
                    "127.0.0.1:\(port)",
                ], input: request)
            #expect(old == "")
            // A client that speaks plain HTTP is cut off, and the server goes on.
            let plain = RawClient(port: port)
            await plain.send(request)
            #expect(!(await plain.readAll()).contains("200 OK"))
        }
    }
}

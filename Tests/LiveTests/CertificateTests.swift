import Foundation
import TestPrograms
import Testing

/// Tests which server a device accepts by its certificate. On Linux an environment variable names a
/// private authority; on other systems the system's store does.
#if os(Linux)
    @Suite("The server's certificate", .timeLimit(.minutes(5)))
    struct CertificateTests {
        private let folder: URL

        init() throws {
            folder = FileManager.default.temporaryDirectory
                .appendingPathComponent("martlet-certificate-\(UUID().uuidString)")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        }

        private func path(_ name: String) -> String { folder.appendingPathComponent(name).path }

        /// Runs a program to its end.
        /// - Returns: Its exit status, its output, and what it wrote to standard error.
        private func run(
            _ program: URL, _ arguments: [String], _ environment: [String: String] = [:]
        ) async throws -> (status: Int32, output: String, said: String) {
            let log = folder.appendingPathComponent("log-\(UUID().uuidString)")
            let running = try RunningProgram(
                program, arguments, environment: environment, log: log)
            var output = ""
            for await line in running.lines { output += line + "\n" }
            return (
                await running.end(), output, try String(contentsOf: log, encoding: .utf8)
            )
        }

        /// Makes a self-signed certificate.
        private func certificate(for names: String) async throws -> (
            certificate: String, key: String
        ) {
            let name = UUID().uuidString
            let made = (certificate: path("\(name).pem"), key: path("\(name).key"))
            let openssl = try await run(
                URL(fileURLWithPath: "/usr/bin/openssl"),
                [
                    "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
                    "/CN=Martlet", "-addext", "subjectAltName=\(names)", "-keyout", made.key,
                    "-out", made.certificate,
                ])
            try #require(openssl.status == 0, "\(openssl.said)")
            return made
        }

        /// Returns the outcome of `martlet init` with a server that has the certificate.
        private func opened(
            _ certificate: (certificate: String, key: String), trusting authority: String
        ) async throws -> (status: Int32, output: String, said: String) {
            let server = try LiveServer(tls: certificate)
            try await server.start()
            let opened = try await run(
                RunningProgram.path("martlet", override: "MARTLET_EXECUTABLE"),
                [
                    "init", path("device-\(UUID().uuidString).sqlite"), "--json", "--server",
                    "https://localhost:\(await server.port)",
                ], ["SSL_CERT_FILE": authority, "MARTLET_TOKEN": LiveServer.token])
            await server.stop()
            return opened
        }

        @Test(
            "is believed where SSL_CERT_FILE names who vouches for it, and for its own names only")
        func authority() async throws {
            defer { try? FileManager.default.removeItem(at: folder) }
            let right = try await certificate(for: "DNS:localhost,IP:127.0.0.1")
            let trusted = try await opened(right, trusting: right.certificate)
            #expect(trusted.status == 0, "\(trusted.said)")
            #expect(trusted.output.contains("\"revision\""))
            // An empty value counts as no value: the system's authorities do not know the
            // certificate.
            let unknown = try await opened(right, trusting: "")
            #expect(unknown.status == 1)
            #expect(unknown.said.contains("certificate is not trusted"), "\(unknown.said)")
            let other = try await certificate(for: "DNS:other.example")
            let misnamed = try await opened(other, trusting: other.certificate)
            #expect(misnamed.status == 1)
            #expect(misnamed.said.contains("certificate is not trusted"), "\(misnamed.said)")
            let missing = try await opened(right, trusting: path("none.pem"))
            #expect(missing.status == 1, "\(missing.said)")
        }

        @Test("of a stranger does not end an import: what was read is queued")
        func imported() async throws {
            defer { try? FileManager.default.removeItem(at: folder) }
            let server = try LiveServer(tls: try await certificate(for: "DNS:localhost"))
            try await server.start()
            try LiveServer.schema.write(
                toFile: path("tables.sql"), atomically: true, encoding: .utf8)
            try "name,city\nOwls,Kiel\n".write(
                toFile: path("teams.csv"), atomically: true, encoding: .utf8)
            let program = RunningProgram.path("martlet", override: "MARTLET_EXECUTABLE")
            let made = try await run(
                program, ["init", path("device.sqlite"), "--schema", path("tables.sql")])
            try #require(made.status == 0, "\(made.said)")
            let address = "https://localhost:\(await server.port)"
            let imported = try await run(
                program,
                ["import", path("device.sqlite"), path("teams.csv"), "--server", address],
                ["MARTLET_TOKEN": LiveServer.token])
            #expect(imported.status == 0, "\(imported.said)")
            #expect(imported.output.contains("1 change sets are queued"), "\(imported.output)")
            await server.stop()
        }
    }
#endif

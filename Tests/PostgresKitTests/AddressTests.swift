import PostgresKit
import TestDatabases
import Testing

@Suite("Address of a database")
struct AddressTests {
    @Test("is read as libpq reads it, and shows no password")
    func readingPostgresAddress() throws {
        let address = try PostgresAddress(
            "postgresql://ann:se%20cret@db.example:5433/teams?sslmode=verify-full&connect_timeout=3"
        )
        #expect(address["host"] == "db.example")
        #expect(address["port"] == "5433")
        #expect(address["dbname"] == "teams")
        #expect(address["password"] == "se cret")
        #expect(address["sslmode"] == "verify-full")
        for text in ["\(address)", String(reflecting: address), "\(Mirror(reflecting: address))"] {
            #expect(!text.contains("cret"))
        }
        var dumped = ""
        dump(address, to: &dumped)
        #expect(!dumped.contains("cret"))
        #expect(address.setting("dbname", "other")["dbname"] == "other")
        #expect(try PostgresAddress("host=a dbname=b")["host"] == "a")
    }

    @Test(
        "is refused with a sentence, and without what was in it",
        arguments: [
            "http://ann:secret@host",
            "postgresql://host/x?secret=1", "postgresql://ann:%zzsecret@host",
        ])
    func malformedPostgresAddress(url: String) throws {
        let error = try TestServer.error { _ = try PostgresAddress(url) }
        #expect(error.kind == .malformedAddress)
        #expect(!error.debugDescription.contains("secret"))
        #expect(error.remedy.contains("postgresql://"))
    }
}

@Suite("Connecting")
struct ConnectingTests {
    private func refusal(
        _ change: (PostgresAddress) -> PostgresAddress
    ) async throws -> PostgresError {
        let address = change(try await TestServer.address())
        return try await TestServer.blocking {
            try TestServer.error { _ = try PostgresConnection(address) }
        }
    }

    @Test("says what is wrong: password, user, database, host, TLS")
    func refusalsOfPostgresLogin() async throws {
        #expect(try await refusal { $0.setting("password", "x") }.kind == .unauthorized)
        #expect(try await refusal { $0.setting("user", "nobody") }.kind == .unauthorized)
        let database = try await refusal { $0.setting("dbname", "none") }
        #expect(database.kind == .noDatabase)
        #expect(database.sqlState == "3D000")
        #expect(try await refusal { $0.setting("host", "host.invalid") }.kind == .unreachable)
        #expect(try await refusal { $0.setting("port", "1") }.kind == .unreachable)
        #expect(try await refusal { $0.setting("port", "x") }.kind == .malformedAddress)
        #expect(try await refusal { $0.setting("sslmode", "often") }.kind == .malformedAddress)
        let untrusted = try await refusal {
            $0.setting("sslmode", "verify-full").setting("sslrootcert", "/nowhere/at-all.pem")
        }
        #expect(untrusted.kind == .untrusted)
    }

    @Test("a refusal that does not pass by itself is not said to")
    func passing() async throws {
        #expect(try await !refusal { $0.setting("password", "x") }.mayPass)
        #expect(try await refusal { $0.setting("port", "1") }.mayPass)
    }

    @Test("TLS as the address asks for it")
    func encryption() async throws {
        let servers = try await DatabaseServers.shared()
        let address = try await TestServer.address()
        let checked = address.setting("sslmode", "verify-full")
            .setting("sslrootcert", servers.certificate)
        let (encrypted, plain) = try await TestServer.blocking {
            (
                try PostgresConnection(checked).isEncrypted,
                try PostgresConnection(address.setting("sslmode", "disable")).isEncrypted
            )
        }
        #expect(encrypted)
        #expect(!plain)
    }

    @Test("a role without rights, one with too many connections, and a read-only session")
    func rightsOfRole() async throws {
        let role = TestServer.name("role")
        try await TestServer.connected { connection in
            try connection.execute(
                """
                CREATE ROLE \(role) LOGIN PASSWORD 'x' CONNECTION LIMIT 1;
                CREATE TABLE \(role) (id integer)
                """)
        }
        let address = try await TestServer.address().setting("user", role).setting("password", "x")
        let kinds = try await TestServer.blocking {
            let connection = try PostgresConnection(address)
            let forbidden = try TestServer.error { _ = try connection.query("TABLE \(role)") }
            let crowded = try TestServer.error { _ = try PostgresConnection(address) }
            return [forbidden.kind, crowded.kind]
        }
        #expect(kinds == [.forbidden, .crowded])
        let options = PostgresOptions(readOnly: true)
        let refused = try await TestServer.connected(options) { connection in
            try TestServer.error { _ = try connection.query("DELETE FROM \(role)") }
        }
        #expect(refused.kind == .readOnly)
        try await TestServer.connected { try $0.execute("DROP TABLE \(role); DROP ROLE \(role)") }
    }

    @Test("a server that says nothing is given up")
    func silenceWhileConnectingToPostgres() async throws {
        let servers = try await DatabaseServers.shared()
        let proxy = try CuttingProxy(
            to: servers.postgresPort, .init(fromServer: 0, isSilent: true))
        let address = try await TestServer.address(through: proxy)
        let error = try await TestServer.blocking {
            try TestServer.error {
                _ = try PostgresConnection(
                    address, PostgresOptions(connecting: .milliseconds(100)))
            }
        }
        #expect(error.kind == .unreachable)
        #expect(error.message.contains("in time"))
    }
}

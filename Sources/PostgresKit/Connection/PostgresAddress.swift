internal import CPostgres

/// The address of a database, with everything that a connection needs: a URL as libpq reads it,
/// including TLS settings.
///
/// ```swift
/// let address = try PostgresAddress("postgresql://app@localhost:5432/shop?sslmode=disable")
/// ```
public struct PostgresAddress: Hashable, Sendable {
    /// One of libpq's settings, such as `host`.
    struct Setting: Hashable, Sendable {
        let name: String
        let value: String
    }

    let settings: [Setting]

    /// Reads an address.
    /// - Parameter url: `postgresql://USER:PASSWORD@HOST:PORT/DATABASE?sslmode=…`, or settings such
    ///   as `host=… dbname=…`
    ///   (https://www.postgresql.org/docs/15/libpq-connect.html#LIBPQ-CONNSTRING).
    /// - Throws: `PostgresError` `.malformedAddress` if libpq cannot read the address.
    public init(_ url: String) throws(PostgresError) {
        var words: UnsafeMutablePointer<CChar>?
        guard let options = PQconninfoParse(url, &words) else {
            defer { PQfreemem(words) }
            // The library's message quotes parts of the URL, which may include the password.
            throw PostgresError(.malformedAddress, "the database's address cannot be read")
        }
        defer { PQconninfoFree(options) }
        var settings: [Setting] = []
        var option = options
        while let name = option.pointee.keyword {
            if let value = option.pointee.val {
                settings.append(
                    Setting(name: String(cString: name), value: String(cString: value)))
            }
            option += 1
        }
        self.settings = settings
    }

    private init(settings: [Setting]) {
        self.settings = settings
    }

    /// Returns the value of a setting; nil if the address leaves it to the library.
    public subscript(name: String) -> String? {
        settings.last { $0.name == name }?.value
    }

    /// Returns the address with one of libpq's settings, such as `dbname`, replaced.
    public func setting(_ name: String, _ value: String) -> PostgresAddress {
        PostgresAddress(
            settings: settings.filter { $0.name != name } + [Setting(name: name, value: value)])
    }

    /// Whether the address names several servers. One of them may be a standby. A connection to it
    /// would stay there while other clients write to the primary server.
    var hasSeveralHosts: Bool {
        ["host", "hostaddr"].contains { self[$0]?.contains(",") ?? false }
    }

    /// Returns the address with defaults for the settings that it does not have.
    func completed(_ defaults: [(String, String)]) -> PostgresAddress {
        PostgresAddress(
            settings: settings
                + defaults.filter { self[$0.0] == nil }.map { Setting(name: $0.0, value: $0.1) })
    }
}

extension PostgresAddress: CustomStringConvertible, CustomReflectable {
    /// The address for logs, without the password and other secrets.
    public var description: String {
        let shown = ["host", "port", "dbname", "user", "sslmode"]
        return settings.filter { shown.contains($0.name) }.map { "\($0.name)=\($0.value)" }
            .joined(separator: " ")
    }

    /// The mirror that keeps a dump from showing what the description hides.
    public var customMirror: Mirror { Mirror(self, children: ["address": description]) }
}

internal import CPostgres

/// Where a database is and how to get in: a URL as libpq reads it, settings of TLS included.
public struct PostgresAddress: Hashable, Sendable {
    /// One of libpq's settings, such as `host`.
    struct Setting: Hashable, Sendable {
        let name: String
        let value: String
    }

    let settings: [Setting]

    /// - Parameter url: `postgresql://USER:PASSWORD@HOST:PORT/DATABASE?sslmode=…`, or settings as
    ///   `host=… dbname=…` (https://www.postgresql.org/docs/15/libpq-connect.html#LIBPQ-CONNSTRING).
    /// - Throws: `PostgresError` `.malformedAddress`.
    public init(_ url: String) throws(PostgresError) {
        var words: UnsafeMutablePointer<CChar>?
        guard let options = PQconninfoParse(url, &words) else {
            defer { PQfreemem(words) }
            // The library's sentence quotes parts of the URL; the password may be among them.
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

    /// What a setting says; nil where the address leaves it to the library.
    public subscript(name: String) -> String? {
        settings.last { $0.name == name }?.value
    }

    /// The address with a setting of libpq's in place of what it said, such as `dbname`.
    public func setting(_ name: String, _ value: String) -> PostgresAddress {
        PostgresAddress(
            settings: settings.filter { $0.name != name } + [Setting(name: name, value: value)])
    }

    /// Whether the address names several servers. One of them may be a standby, and a connection to
    /// it would stay there while the others write elsewhere.
    var hasSeveralHosts: Bool {
        ["host", "hostaddr"].contains { self[$0]?.contains(",") ?? false }
    }

    /// The address with settings for those it says nothing about.
    func completed(_ defaults: [(String, String)]) -> PostgresAddress {
        PostgresAddress(
            settings: settings
                + defaults.filter { self[$0.0] == nil }.map { Setting(name: $0.0, value: $0.1) })
    }
}

extension PostgresAddress: CustomStringConvertible, CustomReflectable {
    /// For logs: without the password and whatever else is secret.
    public var description: String {
        let shown = ["host", "port", "dbname", "user", "sslmode"]
        return settings.filter { shown.contains($0.name) }.map { "\($0.name)=\($0.value)" }
            .joined(separator: " ")
    }

    /// So that a dump does not show what the description hides.
    public var customMirror: Mirror { Mirror(self, children: ["address": description]) }
}

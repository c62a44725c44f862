import Foundation

/// The folder of a demo's files.
struct DemoFolder {
    let path: String
    let schemaPath: String
    let token: String
    /// A text that is different for every folder.
    var tag: String { String(token.prefix(6)) }

    /// Whether the folder has files of an earlier demo's devices.
    var isUsed: Bool { FileManager.default.fileExists(atPath: device(1)) }

    /// Returns the path of a device's file. Devices are counted from 1.
    func device(_ number: Int) -> String { "\(path)/device-\(number).sqlite" }

    /// Creates the folder, or continues with that of an earlier demo.
    /// - Throws: `DemoError` if it has a demo of another schema, or other content.
    init(_ path: String, schema: String) throws {
        let files = FileManager.default
        try files.createDirectory(atPath: path, withIntermediateDirectories: true)
        self.path = path
        schemaPath = path + "/schema.sql"
        let tokenPath = path + "/token"
        if files.fileExists(atPath: tokenPath), files.fileExists(atPath: schemaPath) {
            guard try String(contentsOfFile: schemaPath, encoding: .utf8) == schema else {
                throw DemoError(
                    "\(path) holds a demo of other data. Name another folder with --dir, or remove"
                        + " this one.")
            }
            token = try String(contentsOfFile: tokenPath, encoding: .utf8)
            return
        }
        guard try files.contentsOfDirectory(atPath: path).allSatisfy({ Self.isOwn($0) }) else {
            throw DemoError(
                "\(path) holds other files. Name an empty folder, or a new one, with --dir.")
        }
        token = (0..<4).map { _ in String(UInt64.random(in: .min ... .max), radix: 36) }.joined()
        try Data(schema.utf8).write(to: URL(fileURLWithPath: schemaPath), options: .atomic)
        try Data(token.utf8).write(to: URL(fileURLWithPath: tokenPath), options: .atomic)
    }

    private static func isOwn(_ name: String) -> Bool {
        name.hasPrefix("server") || name.hasPrefix("token")
            || ["schema.sql", "postgres.sql", "rules.sql"].contains(name) || name.hasPrefix(".")
    }

    /// Returns the token of a user, which `make` makes if an earlier demo has not.
    func token(of user: String, make: () async throws -> String) async throws -> String {
        let file = "\(path)/token-\(user)"
        if let token = try? String(contentsOfFile: file, encoding: .utf8) { return token }
        let token = try await make()
        try Data(token.utf8).write(to: URL(fileURLWithPath: file), options: .atomic)
        return token
    }

    /// Writes a rules file for the servers.
    /// - Returns: Its path.
    func write(rules: String) throws -> String {
        let file = path + "/rules.sql"
        try Data(rules.utf8).write(to: URL(fileURLWithPath: file), options: .atomic)
        return file
    }

    /// Returns the bytes of a device's files: the database, its log, and others
    /// that are named after it.
    func bytes(of device: Int) throws -> [[UInt8]] {
        let own = self.device(device)
        return try FileManager.default.contentsOfDirectory(atPath: path).sorted()
            .map { "\(path)/\($0)" }.filter { $0.hasPrefix(own) }
            .map { [UInt8](try Data(contentsOf: URL(fileURLWithPath: $0))) }
    }

    /// Returns the path of the server's file of the data set.
    func serverFile() throws -> String {
        let folder = path + "/server"
        let names = try FileManager.default.subpathsOfDirectory(atPath: folder).sorted()
        guard
            let name = names.first(where: {
                $0.hasSuffix("demo.sqlite") || $0.hasSuffix("demo.db") || $0.hasSuffix("demo")
            })
        else { throw DemoError("The server has no file for the data set in \(folder).") }
        return folder + "/" + name
    }

    /// Asks a server to end if an interrupted demo has left it running on this folder.
    func stopLeftServer() async {
        for name in ["server", "server-1", "server-2"] {
            let file = "\(path)/\(name).pid"
            let text = (try? String(contentsOfFile: file, encoding: .utf8)) ?? ""
            guard let identifier = Int32(text.filter(\.isNumber)), isServer(identifier, name) else {
                continue
            }
            kill(identifier, SIGTERM)
            for _ in 0..<200 where isServer(identifier, name) {
                try? await Task.sleep(for: .milliseconds(100))
            }
        }
    }

    /// Returns whether a process is a server on this folder; false if there is no /proc.
    private func isServer(_ identifier: Int32, _ name: String) -> Bool {
        guard
            let line = try? String(
                contentsOfFile: "/proc/\(identifier)/cmdline", encoding: .utf8)
        else { return false }
        let words = line.split(separator: "\0")
        return words.contains("serve") && words.contains { $0 == path + "/" + name }
    }

    /// Returns the size of all files, in bytes.
    func byteCount() -> Int {
        let files = FileManager.default
        let names = (try? files.subpathsOfDirectory(atPath: path)) ?? []
        return names.reduce(0) { sum, name in
            let size = (try? files.attributesOfItem(atPath: path + "/" + name))?[.size]
            return sum + ((size as? NSNumber)?.intValue ?? 0)
        }
    }
}

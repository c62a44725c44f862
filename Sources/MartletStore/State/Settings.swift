internal import Foundation
internal import SQLiteKit
internal import SystemKit

/// Settings of this device: what a person chose here, and what the app wants to remember. They are
/// not kept in step with anyone. Secrets do not belong here (`SecretStore`).
///
/// They lie in a SQLite file of their own, a row for each, the value as JSON. One file of JSON,
/// replaced whole, would survive a kill as well; but of two processes that change different
/// settings at once it would lose one change, or need a lock beside it, and each change would write
/// all of it. SQLite has the locks, writes a row, says when another process wrote, tells damage from
/// content, and is there anyway. The shell can read the file too.
///
/// - Killed at any instant, each setting has its old or its new value. A power cut may take the last
///   changes back.
/// - Several processes, and several `Settings` of one, may use the file; each change is seen by all,
///   by observers within `SettingsOptions.externalWritesPeriod` where another made it.
/// - Calls wait on a queue and hold no thread that tasks run on.
///
/// Every call throws `StoreError`: `.file` where the file is not a settings file or damaged (move it
/// away, with those of its name that end in “-wal” and “-shm”; a new one begins with the defaults),
/// `.value` where a setting holds something else than its key says, `.busy`, `.diskFull`,
/// `.readOnly`, `.newer`, `.inputOutput`, and `.misuse` once closed.
public final class Settings: Sendable {
    /// The file's path.
    public let path: String
    let observers: SettingObservers
    private let file: Confined<SettingsFile?>

    private init(path: String, file: Confined<SettingsFile?>, observers: SettingObservers) {
        self.path = path
        self.file = file
        self.observers = observers
    }

    /// Opens or creates a file. Its folder must be there.
    public static func open(
        path: String, options: SettingsOptions = SettingsOptions()
    ) async throws -> Settings {
        guard !path.isEmpty, path != ":memory:", !path.utf8.contains(0) else {
            throw StoreError(.file, "Settings need a file. Give a path.")
        }
        let file = Confined<SettingsFile?>(label: "martlet.settings", nil)
        try await file.run { file in
            do {
                file = try SettingsFile(path: path, busyTimeout: options.busyTimeout)
            } catch {
                throw StoreError.of(error)
            }
        }
        let observers = SettingObservers()
        let watch = ExternalWritesWatch(period: options.externalWritesPeriod, sleep: options.sleep)
        {
            [weak observers] in
            file.post { [weak observers] file in
                // A failure shows in the app's next call; here nobody could be told.
                if (try? file?.hasExternalWrites()) ?? false { observers?.wake(nil) }
            }
        }
        observers.onDemand { watch.setWanted($0) }
        return Settings(path: path, file: file, observers: observers)
    }

    /// The value of a setting; its default where it was never set.
    public func value<Value>(_ key: SettingKey<Value>) async throws -> Value {
        try value(try await json(key), of: key)
    }

    /// Sets a setting. Those who observe it hear of it if it is another value.
    public func set<Value>(_ key: SettingKey<Value>, to value: Value) async throws {
        let json = try Self.json(value, of: key)
        try await onFile(key) { try $0.set(key.name, to: json) }
        observers.wake(key.name)
    }

    /// Changes a setting from what it is, with nobody else changing it between, in this process or
    /// another. Others' changes wait for `body`: keep it short.
    /// - Returns: What `body` returns. Where it throws, nothing is changed.
    @discardableResult
    public func update<Value, Result: Sendable>(
        _ key: SettingKey<Value>, _ body: @escaping @Sendable (inout Value) throws -> Result
    ) async throws -> Result {
        let result = try await onFile(key) { file in
            try file.exclusively {
                var value = try Self.value(try file.json(key.name), of: key)
                let result = try body(&value)
                try file.set(key.name, to: try Self.json(value, of: key))
                return result
            }
        }
        observers.wake(key.name)
        return result
    }

    /// Forgets a setting: it has its default again.
    public func remove<Value>(_ key: SettingKey<Value>) async throws {
        try await onFile(key) { try $0.remove(key.name) }
        observers.wake(key.name)
    }

    /// The names of the settings that are set, sorted.
    public func names() async throws -> [String] {
        try await onFile { try $0.names() }
    }

    /// The values of a setting: the one there is, at once, then each new one.
    public func values<Value>(_ key: SettingKey<Value>) -> SettingValues<Value> {
        SettingValues(settings: self, key: key)
    }

    /// Ends observations, and lets go of the file. Later calls throw.
    public func close() async {
        observers.finish()
        try? await file.run { $0 = nil }
    }

    // MARK: - JSON

    func json<Value>(_ key: SettingKey<Value>) async throws -> String? {
        try await onFile(key) { try $0.json(key.name) }
    }

    func value<Value>(_ json: String?, of key: SettingKey<Value>) throws -> Value {
        try Self.value(json, of: key)
    }

    private static func value<Value>(
        _ json: String?, of key: SettingKey<Value>
    ) throws -> Value {
        guard let json else { return key.defaultValue }
        do {
            return try JSONDecoder().decode(Value.self, from: Data(json.utf8))
        } catch {
            throw StoreError(
                .value,
                "The setting “\(key.name)” should hold a \(Value.self), and holds something"
                    + " else. Set or remove it, or read it as what it is.")
        }
    }

    private static func json<Value>(_ value: Value, of key: SettingKey<Value>) throws -> String {
        let encoder = JSONEncoder()
        // Equal values should be equal texts.
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        do {
            return String(decoding: try encoder.encode(value), as: UTF8.self)
        } catch {
            throw StoreError(
                .value,
                "The value for the setting “\(key.name)” cannot be put into JSON. Numbers"
                    + " must be finite.")
        }
    }

    // MARK: - The file

    private func onFile<Value, Result: Sendable>(
        _ key: SettingKey<Value>,
        _ body: @escaping @Sendable (SettingsFile) throws -> Result
    ) async throws -> Result {
        guard (1...255).contains(key.name.utf8.count), !key.name.utf8.contains(0) else {
            throw StoreError(
                .value,
                "A setting's name has 1 to 255 bytes of UTF-8 and no NUL; this one has"
                    + " not. Use another.")
        }
        return try await onFile(body)
    }

    private func onFile<Result: Sendable>(
        _ body: @escaping @Sendable (SettingsFile) throws -> Result
    ) async throws -> Result {
        try await file.run { file in
            guard let file else {
                throw StoreError(.misuse, "The settings are closed. Open them again.")
            }
            do {
                return try body(file)
            } catch {
                throw StoreError.of(error)
            }
        }
    }
}

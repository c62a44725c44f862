internal import Foundation
internal import SQLiteKit
internal import SystemKit

/// Stores settings of this device: a person's choices, and values that the app wants to remember.
/// They are not synchronised. Secrets do not belong here (`SecretStore`).
///
/// ```swift
/// let settings = try await Settings.open(path: path)
/// try await settings.set(.showsScores, to: false)
/// let showsScores = try await settings.value(.showsScores)
/// ```
///
/// They are in their own SQLite file, one row for each, with the value as JSON. A JSON file that is
/// replaced as a whole would survive a kill as well. But if two processes changed different
/// settings at once, it would lose one change or need a lock file, and each change would write the
/// whole file. SQLite has locks, writes single rows, tells when another process wrote,
/// distinguishes damage from content, and is present anyway. The shell can read the file too.
///
/// - If the process is killed at any instant, each setting has its old or its new value. A power
///   cut may undo the last changes.
/// - Several processes, and several `Settings` of one process, may use the file. All of them see
///   each change; observers see another one's change within `SettingsOptions.externalWritesPeriod`.
/// - Calls wait on a queue, and block no thread that runs tasks.
///
/// Every call throws `StoreError`: `.file` if the file is damaged or is no settings file (move it
/// away, with the files of the same name that end in “-wal” and “-shm”; a new one begins with the
/// defaults), `.value` if a setting holds another type than its key says, `.busy`, `.diskFull`,
/// `.readOnly`, `.newer`, `.inputOutput`, and `.misuse` after closing.
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

    /// Opens or creates a file. Its folder must exist.
    /// - Throws: `StoreError`; see `Settings`.
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
                // The app's next call reports a failure; nobody could be told here.
                if (try? file?.hasExternalWrites()) ?? false { observers?.wake(nil) }
            }
        }
        observers.onDemand { watch.setWanted($0) }
        return Settings(path: path, file: file, observers: observers)
    }

    /// Returns the value of a setting, or its default if it was never set.
    /// - Throws: `StoreError`; see `Settings`.
    public func value<Value>(_ key: SettingKey<Value>) async throws -> Value {
        try value(try await json(key), of: key)
    }

    /// Sets a setting. If the value is another one, the observers receive it.
    /// - Throws: `StoreError`; see `Settings`.
    public func set<Value>(_ key: SettingKey<Value>, to value: Value) async throws {
        let json = try Self.json(value, of: key)
        try await onFile(key) { try $0.set(key.name, to: json) }
        observers.wake(key.name)
    }

    /// Changes a setting from its current value. No other change to the settings can come between,
    /// in this process or another. Other changes wait for `body`, so keep it short.
    /// - Returns: The result of `body`.
    /// - Throws: The error of `body`, and `StoreError`; nothing is changed then.
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

    /// Removes a setting, which then has its default again.
    /// - Throws: `StoreError`; see `Settings`.
    public func remove<Value>(_ key: SettingKey<Value>) async throws {
        try await onFile(key) { try $0.remove(key.name) }
        observers.wake(key.name)
    }

    /// Returns the names of the settings that are set, sorted.
    /// - Throws: `StoreError`; see `Settings`.
    public func names() async throws -> [String] {
        try await onFile { try $0.names() }
    }

    /// Returns the values of a setting: the current one at once, then each new one.
    ///
    /// A slow reader gets the newest value and misses the ones between. Consecutive equal values
    /// come once. The sequence ends when the settings are closed or the task is cancelled. It
    /// throws `StoreError` if the value cannot be read.
    public func values<Value>(
        _ key: SettingKey<Value>
    ) -> some AsyncSequence<Value, any Error> & Sendable {
        SettingValues(settings: self, key: key)
    }

    /// Ends observations, and closes the file. Later calls throw.
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
        // Equal values should give equal texts.
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

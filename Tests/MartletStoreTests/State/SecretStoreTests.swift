import Foundation
import MartletStore
import TestFolders
import Testing

/// What every `SecretStore` keeps.
@Suite("Secret stores")
struct SecretStoreTests {
    /// The implementations that can be made here.
    enum Kind: CaseIterable {
        case memory
        case file
    }

    private let temporary: TemporaryFolder

    init() throws {
        temporary = try TemporaryFolder()
    }

    private func store(_ kind: Kind) -> any SecretStore {
        switch kind {
        case .memory: MemorySecretStore()
        case .file: FileSecretStore(folder: temporary.path + "/secrets")
        }
    }

    /// Names that lead elsewhere, hide, or meet where they are used as they are.
    private static let names = [
        "token", "Token", "TOKEN", "../up", "/no-such-folder-of-martlet/a", "..", ".", ".hidden",
        "a/b", "a\\b",
        "nul\u{0}l", "new\nline", "%2e%2e", "%", "ü", "u\u{308}", "🔑", " ", "-rf", "con",
        "a.secret", "*", "$(id)", String(repeating: "x", count: 80),
        String(repeating: "Ü", count: 40),
    ]

    @Test("what is set is there, for its name alone", arguments: Kind.allCases)
    func set(kind: Kind) async throws {
        let store = store(kind)
        #expect(try await store.secret(for: "token") == nil)
        #expect(try await store.names() == [])
        for (index, name) in Self.names.enumerated() {
            try await store.set([UInt8(index), 0, 255], for: name)
        }
        for (index, name) in Self.names.enumerated() {
            #expect(try await store.secret(for: name) == [UInt8(index), 0, 255])
        }
        // As bytes: as texts two of them are equal.
        let found = try await store.names().map { Array($0.utf8) }
        let expected = Self.names.map { Array($0.utf8) }
            .sorted { $0.lexicographicallyPrecedes($1) }
        #expect(found == expected)
    }

    @Test("a secret takes the place of the one before, longer or shorter", arguments: Kind.allCases)
    func replaceOfSecret(kind: Kind) async throws {
        let store = store(kind)
        for count in [1, 65_536, 0, 7] {
            let secret = [UInt8](repeating: 9, count: count)
            try await store.set(secret, for: "key")
            #expect(try await store.secret(for: "key") == secret)
        }
        #expect(try await store.names() == ["key"])
    }

    @Test("what is removed is gone, and removing it again does nothing", arguments: Kind.allCases)
    func remove(kind: Kind) async throws {
        let store = store(kind)
        try await store.remove("a")
        try await store.set([1], for: "a")
        try await store.set([2], for: "A")
        try await store.remove("a")
        try await store.remove("a")
        #expect(try await store.secret(for: "a") == nil)
        #expect(try await store.names() == ["A"])
    }

    @Test(
        "names and secrets that are too long, and empty names, are refused",
        arguments: Kind.allCases)
    func limitsOfSettingNames(kind: Kind) async throws {
        let store = store(kind)
        for name in ["", String(repeating: "x", count: 81), String(repeating: "Ü", count: 41)] {
            for call in [
                { try await store.set([1], for: name) },
                { _ = try await store.secret(for: name) }, { try await store.remove(name) },
            ] as [() async throws -> Void] {
                let error = await #expect(throws: StoreError.self) { try await call() }
                #expect(error?.kind == .value)
            }
        }
        let error = await #expect(throws: StoreError.self) {
            try await store.set([UInt8](repeating: 65, count: 65_537), for: "big")
        }
        #expect(error?.kind == .value)
        #expect(error?.message.contains("AAA") == false)
        #expect(try await store.names() == [])
    }

    @Test(
        "text comes back as text, and what is not UTF-8 is refused as text",
        arguments: Kind.allCases)
    func text(kind: Kind) async throws {
        let store = store(kind)
        try await store.set("pässword", for: "a")
        #expect(try await store.text(for: "a") == "pässword")
        #expect(try await store.text(for: "b") == nil)
        try await store.set([0xff, 0xfe], for: "b")
        let error = await #expect(throws: StoreError.self) { _ = try await store.text(for: "b") }
        #expect(error?.kind == .value)
    }

    @Test("many tasks at once lose nothing and mix nothing", arguments: Kind.allCases)
    func concurrency(kind: Kind) async throws {
        let store = store(kind)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<20 as Range<UInt8> {
                group.addTask {
                    try await store.set([number], for: "own \(number)")
                    try await store.set([UInt8](repeating: number, count: 5_000), for: "shared")
                    let shared = try await store.secret(for: "shared") ?? []
                    #expect(shared.count == 5_000)
                    #expect(Set(shared).count == 1)
                }
            }
            try await group.waitForAll()
        }
        #expect(try await store.names().count == 21)
        for number in 0..<20 as Range<UInt8> {
            #expect(try await store.secret(for: "own \(number)") == [number])
        }
    }
}

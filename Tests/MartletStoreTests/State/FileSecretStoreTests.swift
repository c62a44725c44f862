import Foundation
import Synchronization
import SystemKit
import TestFolders
import Testing

@testable import MartletStore

@Suite("Secrets in files")
struct FileSecretStoreTests {
    private let temporary: TemporaryFolder
    private let folder: String

    init() throws {
        temporary = try TemporaryFolder()
        folder = temporary.path + "/secrets"
    }

    private func permissions(_ path: String) throws -> Int {
        let attributes = try FileManager.default.attributesOfItem(atPath: path)
        return try #require(attributes[.posixPermissions] as? NSNumber).intValue
    }

    private func open(_ path: String, to permissions: Int) throws {
        try FileManager.default.setAttributes(
            [.posixPermissions: permissions], ofItemAtPath: path)
    }

    private func refusal(_ body: () async throws -> Void) async -> StoreError? {
        await #expect(throws: StoreError.self) { try await body() }
    }

    @Test("reading makes nothing; the first secret makes folder and file, for the owner alone")
    func madeOnFirstWrite() async throws {
        let store = FileSecretStore(folder: folder)
        #expect(try await store.secret(for: "token") == nil)
        try await store.remove("token")
        #expect(try temporary.listing() == [])
        try await store.set([1], for: "token")
        #expect(try permissions(folder) == 0o700)
        #expect(try permissions(folder + "/token.secret") == 0o600)
    }

    @Test("another store on the folder, as of another process, has the secrets")
    func shared() async throws {
        let (one, other) = (FileSecretStore(folder: folder), FileSecretStore(folder: folder))
        try await one.set([1], for: "a")
        try await other.set([2], for: "a")
        #expect(try await one.secret(for: "a") == [2])
        try await one.remove("a")
        #expect(try await other.names() == [])
    }

    @Test(
        "a folder that others may use is refused, with what to do",
        arguments: [0o755, 0o710, 0o701])
    func openFolder(mode: Int) async throws {
        let store = FileSecretStore(folder: folder)
        try await store.set([1], for: "a")
        try open(folder, to: mode)
        for call in [
            { try await store.set([2], for: "b") }, { _ = try await store.secret(for: "a") },
            { _ = try await store.names() }, { try await store.remove("a") },
        ] as [() async throws -> Void] {
            let error = await refusal(call)
            #expect(error?.kind == .file)
            #expect(error?.message.contains("chmod 700") == true)
            #expect(error?.message.contains(String(mode, radix: 8)) == true)
        }
        try open(folder, to: 0o700)
        #expect(try await store.secret(for: "a") == [1])
        #expect(try await store.names() == ["a"])
    }

    @Test("a secret's file that others may read is refused; a new secret closes it")
    func openFile() async throws {
        let store = FileSecretStore(folder: folder)
        try await store.set([1], for: "a")
        try open(folder + "/a.secret", to: 0o640)
        let error = await refusal { _ = try await store.secret(for: "a") }
        #expect(error?.kind == .file)
        #expect(error?.message.contains("chmod 600") == true)
        try await store.set([2], for: "a")
        #expect(try await store.secret(for: "a") == [2])
        #expect(try permissions(folder + "/a.secret") == 0o600)
    }

    @Test(
        "links, folders and large files in place of a secret are refused, a file as the folder too")
    func otherThings() async throws {
        let store = FileSecretStore(folder: folder)
        try await store.set([1], for: "a")
        let manager = FileManager.default
        try manager.createSymbolicLink(
            atPath: folder + "/link.secret", withDestinationPath: folder + "/a.secret")
        try manager.createDirectory(
            atPath: folder + "/folder.secret", withIntermediateDirectories: false)
        try Data(count: 65_537).write(to: URL(fileURLWithPath: folder + "/large.secret"))
        for name in ["link", "folder", "large"] {
            #expect(await refusal { _ = try await store.secret(for: name) }?.kind == .file)
        }
        let wrong = FileSecretStore(folder: folder + "/a.secret")
        #expect(await refusal { try await wrong.set([1], for: "a") }?.kind == .file)
        #expect(await refusal { _ = try await wrong.secret(for: "a") }?.kind == .file)
    }

    @Test("files that hold no secret are not listed")
    func externalFiles() async throws {
        let store = FileSecretStore(folder: folder)
        try await store.set([1], for: "a")
        for name in ["README", "x", ".secret", "%2.secret", "%zz.secret", "A.secret", "%61.secret"]
        {
            try Data().write(to: URL(fileURLWithPath: folder + "/" + name))
        }
        #expect(try await store.names() == ["a"])
    }

    @Test("no name leads out of the folder")
    func hostileNames() async throws {
        let store = FileSecretStore(folder: folder)
        for name in [
            "../x", "/no-such-folder-of-martlet/x", "..", ".", "a/../../x", "\u{0}", "~",
            ".martlet-1-1.draft",
        ] {
            try await store.set([1], for: name)
        }
        #expect(try temporary.listing() == ["secrets"])
        let files = try FileManager.default.contentsOfDirectory(atPath: folder)
        #expect(files.count == 8)
        #expect(files.allSatisfy { $0.hasSuffix(".secret") && !$0.hasPrefix(".") })
    }

    @Test("killed at any operation, the old or the new secret is there; what it left is cleared up")
    func kills() async throws {
        let whole = FileSecretStore(folder: folder)
        try await whole.set([1], for: "a")
        var left = 0
        for killed in 1...30 {
            let count = Mutex(0)
            let faults = FileFaults { _ in
                count.withLock { count in
                    count += 1
                    return count >= killed ? EIO : nil
                }
            }
            try? await FileSecretStore(folder: folder, faults: faults).set([2], for: "a")
            let files = try FileManager.default.contentsOfDirectory(atPath: folder)
            left += files.count - 1
            // The next life of the process.
            let next = FileSecretStore(folder: folder)
            #expect([[1], [2]].contains(try await next.secret(for: "a")))
            #expect(try await next.names() == ["a"])
            try await next.set([1], for: "a")
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == ["a.secret"])
        }
        #expect(left >= 3)
    }

    @Test(
        "a full disk and missing rights are told, and the secret stays",
        arguments: [ENOSPC, EACCES, EROFS])
    func refusedWriting(number: Int32) async throws {
        try await FileSecretStore(folder: folder).set([1], for: "a")
        let faults = FileFaults { $0 == .create ? number : nil }
        let store = FileSecretStore(folder: folder, faults: faults)
        let error = await refusal { try await store.set([2], for: "a") }
        let kinds: [Int32: StoreError.Kind] = [
            ENOSPC: .diskFull, EACCES: .inputOutput, EROFS: .readOnly,
        ]
        #expect(error?.kind == kinds[number])
        #expect(try await store.secret(for: "a") == [1])
    }
}

import MartletModel
import MartletProtocol
import SetTexts
import Testing

@testable import MartletServerCore

/// Tests of differences with deleted records whose keys were given to others.
@Suite("Keys of deleted records, in views")
struct RemadeTests {
    private static let schema = "CREATE TABLE tags (key TEXT PRIMARY KEY, label TEXT, boss TEXT);"
    private static let rules = """
        CREATE POLICY own ON tags USING (boss = martlet_user());
        CREATE POLICY office ON tags TO office USING (true);
        """
    private static let office = Principal(name: "o", user: "olga", roles: ["office"])

    private static func make(_ label: String) -> SetText {
        SetText().create("tags", "k", #""label":"\#(label)","boss":"ann""#)
    }

    enum Course: CaseIterable { case apart, inOneRequest, byProgram }

    @Test(
        "the deleted record is hidden, in a set of its own",
        arguments: StorageKind.all, Course.allCases)
    func hidden(kind: StorageKind, course: Course) async throws {
        let server = try await TestDataSet(kind, Self.schema)
        try server.secure(by: Self.rules)
        try server.send(Self.make("old"), from: "writer", as: Self.office)
        let ann = ViewedDevice("a", Principal(name: "a", user: "ann"))
        let office = ViewedDevice("o", Self.office)
        for device in [ann, office] { try device.exchange(with: server) }
        for label in ["new", "newer"] {
            let delete = SetText().delete(
                "tags", "k", #""revision":\#(server.node.head.revision)"#)
            switch course {
            case .apart:
                try server.send(delete, from: "writer", as: Self.office)
                try server.send(Self.make(label), from: "writer", as: Self.office)
            case .inOneRequest:
                _ = try server.exchange(
                    [delete, Self.make(label)], from: "writer", as: Self.office)
            case .byProgram:
                for sql in [
                    "DELETE FROM tags",
                    "INSERT INTO tags (key, label, boss) VALUES ('k', '\(label)', 'ann')",
                ] {
                    try server.execute(sql)
                    while server.node.takeExternalWrites(now: 5_000) {}
                    try #require(server.node.takeFault() == nil)
                }
            }
        }
        #expect(server.node.head.revision == 5)
        try ann.exchange(with: server)
        let sets = try SyncCoder.decodeAnswer(Array(ann.heard.utf8)).changeSets
        #expect(sets.count == 2 && sets.allSatisfy(\.isDifference))
        #expect(
            sets.first?.types.first?.hidden == [.text("k")] && sets.first?.types.first?.update == []
        )
        #expect(
            sets.last?.types.first?.update == [.text("k")] && sets.last?.types.first?.delete == [])
        #expect(ann.records["tags"]?[.text("k")]?["label"] == "newer")
        // Nothing is told again, to nobody who is new, and to nobody who sees everything.
        for device in [ann, office, ViewedDevice("a2", Principal(name: "a", user: "ann"))] {
            try device.exchange(with: server)
            #expect(!device.heard.contains("hidden"))
            #expect(device.records["tags"]?[.text("k")]?["label"] == "newer")
        }
    }

    @Test("a record that leaves a view and comes back is not", arguments: StorageKind.all)
    func cameBack(kind: StorageKind) async throws {
        let server = try await TestDataSet(kind, Self.schema)
        try server.secure(by: Self.rules)
        try server.send(Self.make("old"), from: "writer", as: Self.office)
        let (ann, second) = (
            ViewedDevice("a", Principal(name: "a", user: "ann")),
            ViewedDevice("a2", Principal(name: "a", user: "ann"))
        )
        for device in [ann, second] { try device.exchange(with: server) }
        for (revision, boss) in [(1, "bob"), (2, "ann")] {
            try server.send(
                SetText().update("tags", "k", #""revision":\#(revision),"boss":"\#(boss)""#),
                from: "writer", as: Self.office)
            try second.exchange(with: server)
        }
        try ann.exchange(with: server)
        #expect(!ann.heard.contains("hidden"))
        #expect(ann.records["tags"]?[.text("k")]?["label"] == "old")
    }
}
